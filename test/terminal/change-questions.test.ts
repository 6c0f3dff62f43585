/** A command has run on its private view, and the person at the terminal decides what of its changes enters the workspace. */

import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { ctrlC, ctrlD } from '../support/talk.ts'
import { isDeep } from '../support/tier.ts'
import { alone, call, home, scripted, turn } from '../support/turns.ts'
import { until } from '../support/until.ts'

const real = test.if(needs('bwrap'))
/** Other tests of the fast tier reach the same decision in another way. */
const deep = isDeep ? real : () => {}
const shell = (command: string) => call('shell', { command })
const two = shell('echo made > a.txt; echo other > b.txt; echo ran')
const over = { text: 'You were told: {{last_tool_result}}' }
const asks = 'Apply these changes?'

const content = (at: Nest, path: string) =>
  existsSync(join(at.workspace, path)) ? readFileSync(join(at.workspace, path), 'utf8') : undefined
const both = (at: Nest) => [content(at, 'a.txt'), content(at, 'b.txt')]

/** One turn at a terminal, with these answers to its questions. */
function answered(at: Nest, answers: readonly (readonly [string, string])[], first: object = two, env = {}) {
  return at.terminal(['agent', '-m', 'go'], answers, { env: { ...scripted(at, [first, over]).env, ...env }, timeoutMs: 20_000 })
}

/** Waits until another process can see the question, which is when the changes wait for a decision. */
async function openQuestion(at: Nest): Promise<string> {
  const database = join(at.home, '.braidclaw/memory.sqlite')
  await until(() => {
    if (!existsSync(database)) return false
    using db = new Database(database, { readwrite: true, create: false })
    // It may be in the making.
    db.run('PRAGMA busy_timeout = 5000')
    const asked = (sql: string) => db.query(sql).get() !== null
    return asked("SELECT 1 FROM sqlite_schema WHERE name = 'approvals'") && asked("SELECT 1 FROM approvals WHERE state = 'open'")
  })
  return JSON.parse((await at.run(['approvals', 'list', '--json'])).stdout)[0].id
}

const kept = async (at: Nest) => JSON.parse((await at.run(['changes', 'list', '--json'])).stdout)

describe('nothing enters the workspace', () => {
  const refusals = [
    ['after a no, whose reason the model is told', 'n use tabs\r', 'use tabs'],
    ['after Enter', '\r', 'the workspace is as it was before the command'],
    ['at the end of input', ctrlD, 'the workspace is as it was before the command'],
  ] as const

  real.each(isDeep ? refusals : refusals.slice(0, 1))('%s', async (_, typed, told) => {
    using at = home()
    const { code, stdout } = await answered(at, [[asks, typed]])
    expect([code, both(at), await kept(at)]).toEqual([3, [undefined, undefined], []])
    expect(stdout).toContain(told)
    expect((await at.run(['receipt', 'list'])).stdout).toContain('denied')
    expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
  })

  deep('after Ctrl-C, which cancels the turn', async () => {
    using at = home()
    const { code } = await answered(at, [[asks, ctrlC]])
    expect([code, both(at), await kept(at)]).toEqual([130, [undefined, undefined], []])
  })

  real('of a file that was not chosen', async () => {
    using at = home()
    const { code, stdout } = await answered(at, [
      [asks, 's\r'],
      ['goes back:', '2\r'],
      [asks, 'y\r'],
    ])
    expect([code, both(at)]).toEqual([0, [undefined, 'other\n']])
    expect(stdout).toContain('The person chose or edited what was applied: only "b.txt"')
    const [set] = await kept(at)
    expect(set).toMatchObject({ state: 'applied', count: 1 })
    expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
    expect((await at.run(['undo'])).code).toBe(0)
    expect(both(at)).toEqual([undefined, undefined])
  })

  real('when somebody made the same file while the question stood', async () => {
    using at = home()
    const turning = answered(at, [[asks, '']])
    const id = await openQuestion(at)
    writeFileSync(join(at.workspace, 'a.txt'), 'mine\n')
    await at.run(['approvals', 'allow', id])
    const { code, stdout } = await turning
    expect(both(at)).toEqual(['mine\n', undefined])
    expect([code, stdout]).toEqual([expect.any(Number), expect.stringContaining('its changes were not applied')])
  })
})

describe('a yes', () => {
  real('applies what was shown; undo takes it back', async () => {
    using at = home()
    const { code, stdout } = await answered(at, [[asks, 'y\r']])
    expect(stdout).toContain('new a.txt (+1 −0)')
    expect([code, both(at)]).toEqual([0, ['made\n', 'other\n']])
    expect((await at.run(['undo'])).stdout).toStartWith('undone: 2 paths of run_')
    expect(both(at)).toEqual([undefined, undefined])
  })

  real('to what the person edited applies exactly that, and the record has its digest', async () => {
    using at = home()
    const editor = join(at.dir, 'editor')
    writeFileSync(editor, '#!/bin/sh\necho mine > "$1"\n', { mode: 0o755 })
    const { code, stdout } = await answered(
      at,
      [
        [asks, 'e\r'],
        [asks, 'y\r'],
      ],
      two,
      { EDITOR: editor },
    )
    expect([code, both(at)]).toEqual([0, ['mine\n', 'other\n']])
    expect(stdout).toContain('+mine')
    const { stdout: journal } = await at.run(['run', 'show', 'last', '--json'])
    expect(journal).toContain('the person applied the changes, and edited a.txt first')
    const digests = [...journal.matchAll(/"(?:digest|changes)":"([0-9a-f]{64})"/g)].map(([, digest]) => digest)
    expect(new Set(digests).size).toBeGreaterThan(1)
    expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
  })

  real('from a second terminal, which saw the same difference, lets the first go on', async () => {
    using at = home()
    const turning = answered(at, [[asks, '']])
    const name = (await openQuestion(at)).replace('changes:', '')
    expect((await at.run(['approvals', 'show', name])).stdout).toContain('new a.txt (+1 −0)\n@@ -0,0 +1 @@\n+made\n')
    expect((await at.run(['changes', 'show', name, '--patch'])).stdout).toContain('+other\n')
    expect((await at.run(['approvals', 'allow', name])).stdout).toStartWith('allowed, once: ')
    expect([(await turning).code, both(at)]).toEqual([0, ['made\n', 'other\n']])
    expect((await kept(at))[0]).toMatchObject({ state: 'applied', count: 2 })
  })

  deep('that comes when nobody waits any more applies the changes, once', async () => {
    using at = home()
    const { code, stderr } = await turn(at, [two, over], [], { through: alone })
    expect([code, both(at)]).toEqual([4, [undefined, undefined]])
    const [, name = ''] = /braidclaw approvals allow (\S+)/.exec(stderr) ?? []
    expect((await at.run(['approvals', 'allow', name.replace(/[;,]$/, '')])).stdout).toStartWith('applied: 2 paths: ')
    expect(both(at)).toEqual(['made\n', 'other\n'])
    expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
  })
})

deep('in a conversation the editor gets the terminal, and the conversation gets it back', async () => {
  using at = home()
  const editor = join(at.dir, 'editor')
  writeFileSync(editor, '#!/bin/sh\n[ -t 0 ] && [ -t 1 ] && echo EDITING && read word && echo "$word" > "$1"\n', { mode: 0o755 })
  const { stdout } = await at.terminal(
    ['agent'],
    [
      ['> ', 'go\r'],
      [asks, 'e\r'],
      ['EDITING', 'typed\r'],
      ['+typed', 'y\r'],
      ['told: ran', ctrlD],
    ],
    { env: { ...scripted(at, [two, over]).env, NO_COLOR: '1', EDITOR: editor }, timeoutMs: 20_000 },
  )
  expect(stdout).not.toContain('bug in BraidClaw')
  expect(both(at)).toEqual(['typed\n', 'other\n'])
})

real('in a conversation /changes, /diff and /undo tell of what was changed and take it back', async () => {
  using at = home()
  const { stdout } = await at.terminal(
    ['agent'],
    [
      ['> ', 'go\r'],
      [asks, 'y\r'],
      ['told: ran', '/changes\r'],
      ['shell: echo made', '/diff\r'],
      ['+made', '/undo\r'],
      ['undone: 2 paths', '/undo\r'],
      ['nothing to undo', ctrlD],
    ],
    { env: { ...scripted(at, [two, over]).env, NO_COLOR: '1' }, timeoutMs: 20_000 },
  )
  expect(stdout).toContain('there is nothing to undo in')
  expect(both(at)).toEqual([undefined, undefined])
  expect((await at.run(['receipt', 'list'])).stdout).toContain('changes.undo')
  expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
})

real('a yes counts after the process that asked was killed', async () => {
  using at = home()
  const turning = answered(at, [[asks, '']])
  const id = await openQuestion(at)
  const [run] = JSON.parse((await at.run(['run', 'list', '--json'])).stdout)
  process.kill(Number(run.owner.split('@')[0]), 'SIGKILL')
  expect((await turning).code).not.toBe(0)
  const { stdout } = await at.run(['approvals', 'allow', id])
  expect(stdout).toStartWith('applied: 2 paths: ')
  expect(both(at)).toEqual(['made\n', 'other\n'])
  expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
})

real('a file tool shows what it would change before it asks', async () => {
  using at = home()
  at.file('a.txt', 'one\ntwo\n')
  const edit = call('file_edit', { path: 'a.txt', old: 'two', new: 'three' })
  const { stdout } = await answered(at, [['[y/N/a]', 'y\r']], edit, { NO_COLOR: '1' })
  expect(stdout).toMatch(
    /changed a\.txt \(\+1 −1\)\n@@ -1,2 \+1,2 @@\n one\n-two\n\+three\nfile_edit: .* · medium risk · .*\nApprove\? \[y\/N\/a\] /,
  )
  expect(content(at, 'a.txt')).toBe('one\nthree\n')
})

deep('a difference of 10,000 lines is folded, and d shows all of it', async () => {
  using at = home()
  const { code, stdout } = await answered(
    at,
    [
      [asks, 'd\r'],
      [asks, 'y\r'],
    ],
    shell('seq 1 10000 > a.txt'),
    { NO_COLOR: '1' },
  )
  expect(code).toBe(0)
  expect(stdout).toContain('… 9,961 more lines not shown (+9,961 −0)')
  expect(stdout).toContain('+10000\n')
})
