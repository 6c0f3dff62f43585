/** The limits of a turn: the same whatever file there is, the small ones of the first specification on request, and words that say what to raise. */

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openMemory } from '../../src/memory/memory.ts'
import { minimumConfig, type Nest, nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { call, home, refused, turn } from '../support/turns.ts'

const limitsOf = async (at: Nest) => JSON.parse((await at.run(['config', 'show', '--json'])).stdout).limits
const origins = async (at: Nest) => (await at.run(['config', 'show', '--origin'])).stdout
const receipts = (at: Nest) => readFileSync(join(at.home, '.braidclaw/tool_receipts.log'), 'utf8').trimEnd().split('\n').length

const lines = Array.from({ length: 40 }, (_, at) => `line ${at + 1}`).join('\n')
/** Each another line of one file. */
const reading = (rounds: number) =>
  Array.from({ length: rounds }, (_, at) => call('file_read', { path: 'long.txt', offset: at + 1, limit: 1 }))
const looking = (rounds: number) => Array.from({ length: rounds }, () => call('file_list', { path: '.' }))
const answer = { text: 'All read.' }

/** The latest run once more, as a program of before wrote it. */
function withoutLimits(at: Nest): void {
  const opened = openMemory({ path: join(at.home, '.braidclaw/memory.sqlite'), log: () => {}, now: () => 1 })
  if (!opened.ok) throw new Error(opened.failure.message)
  const { journal, close } = opened.memory
  const [last] = journal.runs({ limit: 1 })
  if (!last) throw new Error('no run')
  for (const { kind, type, at: time, body } of journal.events(last.runId)) {
    const { limits: _, ...rest } = Object(body)
    journal.append({ run: { ...last, runId: 'run_old', turnId: 'turn_old' }, kind, type, at: time, body: rest })
  }
  journal.end('run_old', { at: 1, code: last.code ?? '', message: last.message ?? '', digest: last.digest })
  close()
}

describe('which limits hold', () => {
  const usual = {
    max_tool_rounds: 100,
    max_same_results: 5,
    max_response_bytes: 1_000_000,
    tool_timeout_s: 30,
    shell_timeout_s: 120,
    shell_timeout_max_s: 600,
    max_background: 8,
    job_output_bytes: 1_048_576,
    http_timeout_s: 20,
    max_output_bytes: 65_536,
    max_result_bytes: 16_777_216,
    max_parallel: 4,
    max_turns_at_once: 256,
  }

  test('the same without a file, with a file that is silent, and with the one of init', async () => {
    using at = nest()
    expect(await limitsOf(at)).toEqual(usual)
    const shown = await origins(at)
    expect(shown).toContain('max_tool_rounds = 100  # default: built in\nmax_same_results = 5  # default: built in\n')
    expect(shown).toContain("# context_tokens is not set: 128,000, or two fifths of the model's context window where that is less\n")
    using made = nest()
    expect((await made.run(['init'])).code).toBe(0)
    expect(await limitsOf(made)).toEqual(usual)
    for (const text of [minimumConfig, '[limits]\nmax_parallel = 4\n', '']) {
      at.config(text)
      expect(await limitsOf(at)).toEqual(usual)
    }
  })

  test('a file of an earlier version keeps the numbers that it names', async () => {
    using at = nest()
    at.config('[limits]\n# Rounds of tool calls in one turn. Without this line: 5.\nmax_tool_rounds = 7\n# shell_timeout_s = 15\n')
    expect(await limitsOf(at)).toEqual({ ...usual, max_tool_rounds: 7 })
  })

  test('init --seed-defaults writes two lines into a new file, and doctor says which limits hold and why', async () => {
    using at = nest()
    const file = join(at.home, '.braidclaw/config.toml')
    expect((await at.run(['init', '--seed-defaults'])).code).toBe(0)
    expect(readFileSync(file, 'utf8').match(/^max_tool_rounds.*|^shell_timeout_s.*/gm)).toEqual([
      'max_tool_rounds = 5',
      'shell_timeout_s = 15',
    ])
    expect(await limitsOf(at)).toEqual({ ...usual, max_tool_rounds: 5, shell_timeout_s: 15 })
    const { stdout } = await at.run(['doctor'], { env: { BRAIDCLAW_LIMITS_SHELL_TIMEOUT_S: '60' } })
    const says = `max_tool_rounds 5 (${file}:N), max_same_results 5 (default), shell_timeout_s 60 (BRAIDCLAW_LIMITS_SHELL_TIMEOUT_S)`
    expect(stdout.replace(/toml:\d+/g, 'toml:N')).toContain(says)
  })

  test('init --seed-defaults leaves a file that is there as it is, and names the two lines', async () => {
    using at = nest()
    at.config(minimumConfig)
    const { code, stderr } = await at.run(['init', '--seed-defaults'])
    expect([code, await limitsOf(at)]).toEqual([0, usual])
    expect(stderr).toContain('max_tool_rounds = 5, shell_timeout_s = 15')
  })
})

describe('rounds', () => {
  test('real work of thirty rounds comes to its end with a file that is silent, and not with the seed defaults', async () => {
    using silent = nest()
    silent.file('long.txt', lines)
    silent.config(minimumConfig)
    expect(await turn(silent, [...reading(30), answer])).toMatchObject({ code: 0, stdout: 'All read.\n' })
    using at = nest()
    at.file('long.txt', lines)
    at.config(`${minimumConfig}\n[limits]\nmax_tool_rounds = 5\n`)
    const { code, stderr } = await turn(at, [...reading(30), answer])
    expect([code, receipts(at)]).toEqual([5, 6])
    expect(stderr).toContain('the limit of 5 tool rounds is reached; raise limits.max_tool_rounds or pass --max-turns')
  })
})

describe('a model that goes round in circles', () => {
  test('is stopped after the fifth time with exit 5, and the call and the setting are named; its record is whole', async () => {
    using at = nest()
    at.file('a.txt', 'a')
    const ended = await turn(at, [...looking(9), answer])
    refused(ended, 5, 'the model repeats itself: the same call gave the same result 5 times', 'file_list', 'raise limits.max_same_results')
    expect(receipts(at)).toBe(5)
    const replayed = await at.run(['replay', 'last'])
    expect([replayed.code, replayed.stderr]).toEqual([0, expect.stringContaining('the same')])
    expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
    expect((await at.run(['rebuild', '--check'])).code).toBe(0)
    expect(await turn(at, [{ text: 'Hello again.' }], ['-c'])).toMatchObject({ code: 0, stdout: 'Hello again.\n' })
  })

  test('says so in JSON too, and another number may be set', async () => {
    using at = home('\n[limits]\nmax_tool_rounds = 50\nmax_same_results = 3\n')
    const { code, stdout } = await turn(at, [...looking(9), answer], ['--json'])
    expect([code, JSON.parse(stdout)]).toEqual([
      5,
      expect.objectContaining({ ending: 'limit', exitCode: 5, message: expect.stringContaining('the same result 3 times') }),
    ])
    expect(receipts(at)).toBe(3)
  })

  test('a run that does not say its limits is older than this rule, and its replay has none', async () => {
    using at = nest()
    const repeating = { env: { BRAIDCLAW_LIMITS_MAX_SAME_RESULTS: '50' } }
    expect((await turn(at, [...looking(7), answer], [], repeating)).code).toBe(0)
    withoutLimits(at)
    const { stderr } = await at.run(['replay', 'run_old'])
    expect(stderr).toContain('warning: run_old does not say under which limits it ran')
    // The copy has another id, so its stream has another digest; all that happens in it is the same to the end.
    expect(stderr).toContain('the journal has finish (answered) after another event stream, the replay finish (answered)')
  })

  test('is told apart from one that looks again after each change', async () => {
    using at = nest()
    at.file('a.txt', '0')
    const work = [1, 2, 3, 4, 5, 6].flatMap((number) => [
      call('file_edit', { path: 'a.txt', old: `${number - 1}`, new: `${number}` }),
      call('file_read', { path: 'fixed.txt' }),
    ])
    at.file('fixed.txt', 'never changes')
    expect(await turn(at, [...work, answer], ['--approve-all-medium'])).toMatchObject({ code: 0, stdout: 'All read.\n' })
  })
})

describe('how long a command may take', () => {
  const times = (more: string) => home(`\n[limits]\nmax_tool_rounds = 9\ntool_timeout_s = 0.3\nshell_timeout_s = 0.5\n${more}`)
  const shell = (command: string, timeout?: number) => call('shell', { command, ...(timeout === undefined ? {} : { timeout }) })
  const got = { text: 'Got: {{last_tool_result}}' }
  const run = (at: Nest, one: object) => turn(at, [one, got], ['--autonomy', 'full'])

  test.if(needs('bwrap'))('a call asks for longer than is usual and gets it, whatever the limit of other tools', async () => {
    using at = times('')
    expect((await run(at, shell('sleep 1.2; echo done', 5))).stdout).toBe('Got: done\n')
  })

  test.if(needs('bwrap'))('without asking it has the usual time, and the words say how to get more', async () => {
    using at = times('')
    const { stdout } = await run(at, shell('echo begun; sleep 60'))
    expect(stdout).toContain('begun')
    expect(stdout).toContain(
      'timed out after 0.5 s (limits.shell_timeout_s; a call may ask for "timeout" up to 600 s, limits.shell_timeout_max_s)',
    )
  })

  test('more than the maximum, none at all, and what is no whole number is refused before anything runs', async () => {
    using at = times('shell_timeout_max_s = 7\n')
    const asked = async (timeout: unknown) =>
      (await turn(at, [call('shell', { command: 'touch ran', timeout }), got], ['--autonomy', 'full'])).stdout
    expect(await asked(8)).toContain('"timeout" must be at most 7')
    expect(await asked(0)).toContain('"timeout" must be at least 1')
    expect(await asked(1.5)).toContain('"timeout" must be')
    expect(await asked('9')).toContain('"timeout" must be')
    expect((await at.run(['tool', 'run', 'file_list', '--json', '{}'])).stdout).not.toContain('ran')
  })
})
