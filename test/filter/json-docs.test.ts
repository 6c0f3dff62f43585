/** Holds the schemas of docs/json.md against real runs of every ending, and runs the recipes of the page as they stand there. */

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { compileSchema } from '../../src/mcp/client/content.ts'
import type { Nest, Result } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { shell } from '../support/shell.ts'
import { alone, call, home, scripted } from '../support/turns.ts'

const page = readFileSync(join(import.meta.dir, '../../docs/json.md'), 'utf8')
const schemas = [...page.matchAll(/```json\n(.*?)```/gs)].map(([, text = '']) => JSON.parse(text))
const [flawOfObject, flawOfLine] = schemas.map((schema) => compileSchema(schema))
const recipes = [...page.matchAll(/```sh\n(.*?)```\n```text\n(.*?)```/gs)].map(([, script = '', printed = '']) => ({ script, printed }))

const usage = { input_tokens: 900, output_tokens: 5, cached_input_tokens: 100 }
const fine = { text: 'Done.', usage }

type Case = {
  readonly replies: readonly object[]
  readonly code: number
  readonly args?: readonly string[]
  readonly env?: { readonly [name: string]: string }
  /** Interrupts it after its first call. */
  readonly stops?: true
}

const endings: { readonly [ending: string]: Case } = {
  denied: { replies: [call('file_read', { path: '/etc/passwd' }), fine], code: 3 },
  approval_needed: { replies: [call('file_write', { path: 'x', content: 'x' }), fine], code: 4 },
  limit: { replies: [call('time', {}), call('file_list', { path: '.' }), fine], code: 5, args: ['--max-turns', '1'] },
  budget: { replies: [fine], code: 6, env: { BRAIDCLAW_LIMITS_MAX_RUN_TOKENS: '5' } },
  provider: { replies: [{ error: 'auth' }], code: 8 },
  cancelled: { replies: [call('time', {}), { ...fine, delay_ms: 20_000 }], code: 130, stops: true },
  checks_failed: { replies: [fine], code: 11, args: ['--check', 'false'] },
  answered: {
    replies: [
      { thinking: 'hm', ...call('time', {}), usage },
      { ...fine, chunks: 2 },
    ],
    code: 0,
  },
}

async function run(at: Nest, { replies, args = [], env = {}, stops }: Case, format: readonly string[]): Promise<Result> {
  const words = ['agent', '-p', 'go', ...args, ...format]
  const started = at.start(words, { env: { ...scripted(at, replies).env, ...env, BRAIDCLAW_LOG: 'debug' }, through: stops ? [] : alone })
  if (stops) {
    await started.says('receipt written')
    process.kill(started.pid, 'SIGINT')
  }
  return started.result
}

describe.each(Object.entries(endings))('%s', (ending, example) => {
  const needed = ending === 'checks_failed' ? ['bwrap', 'setsid'] : ['setsid']

  test.if(needs(...needed))('as one object', async () => {
    using at = home()
    const { code, stdout } = await run(at, example, ['--json'])
    const printed = JSON.parse(stdout)
    expect([code, flawOfObject?.(printed)]).toEqual([example.code, undefined])
    expect(printed).toMatchObject({ ending, exitCode: example.code, model: 'mock', provider: 'local' })
  })

  test.if(needs(...needed))('as lines', async () => {
    using at = home()
    const { code, stdout } = await run(at, example, ['--output-format', 'stream-json'])
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect([code, events.map((event) => flawOfLine?.(event)).filter(Boolean)]).toEqual([example.code, []])
    expect(events.at(-1)).toMatchObject({ type: 'done', model: 'mock', provider: 'local' })
  })
})

test('what was used and what it cost are those of the turn, in both', async () => {
  using at = home()
  at.config('default_provider = "paid"\n[providers.models.paid]\nkind = "mock"\nprice_input = 1\nprice_output = 2\n')
  const { env } = scripted(at, [{ text: 'hi', usage: { ...usage, cached_input_tokens: 0 } }])
  const spent = {
    usage: { inputTokens: 900, outputTokens: 5, costMicros: 910 },
    model: 'mock',
    provider: 'paid',
    durationMs: expect.any(Number),
  }
  expect(JSON.parse((await at.run(['hello there', '--json'], { env })).stdout)).toMatchObject(spent)
  const lines = (await at.run(['hello there', '--output-format', 'stream-json'], { env })).stdout.trim().split('\n')
  expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject(spent)
})

test('a member that the page does not know is noticed', () => {
  expect(flawOfObject?.({ odd: 1 })).toContain('must NOT have additional properties')
  expect(flawOfLine?.({ type: 'done', odd: 1 })).toBeDefined()
})

const replies = [
  [{ text: '{"pass": false, "why": "The loop never ends."}', usage: { input_tokens: 120, output_tokens: 9 } }],
  [call('file_write', { path: 'greeting.txt', content: 'hello\n' }), { text: 'It passes.' }],
]

describe('the recipes', () => {
  const repository = (at: Nest) => {
    at.file('test.sh', 'grep -q hello greeting.txt\n')
    at.file('greeting.txt', 'hi\n')
    const git = 'git -c user.name=a -c user.email=a@example.org'
    return shell(at, `git init -q . && git add -A && ${git} commit -qm one && echo >> test.sh && ${git} commit -qam two`)
  }

  test.if(needs('bwrap', 'git', 'jq')).each(recipes)('$script', async ({ script, printed }) => {
    using at = home()
    expect((await repository(at)).code).toBe(0)
    const reply = replies[recipes.findIndex((recipe) => recipe.script === script)] ?? []
    expect(await shell(at, `set -e\n${script}`, scripted(at, reply).env)).toEqual({ code: 0, stdout: printed, stderr: '' })
  })

  test.if(needs('git', 'jq')).each([
    ['a budget that is spent', [{ text: '{}' }], 'budget spent\ndo not merge\n', 'MAX_RUN_TOKENS=5'],
    ['an answer without the form', [{ text: 'fine' }], 'no answer of that form\ndo not merge\n', ''],
    ['a provider that fails', [{ error: 'auth' }], 'not reviewed: exit 8\ndo not merge\n', ''],
  ])('the first one with %s', async (_, reply, printed, budget) => {
    using at = home()
    await repository(at)
    const script = (recipes[0]?.script ?? '').replace(/MAX_RUN_TOKENS=\d+/, (kept) => budget || kept)
    expect((await shell(at, script, scripted(at, reply).env)).stdout).toBe(printed)
  })
})
