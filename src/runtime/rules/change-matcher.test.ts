import { describe, expect, test } from 'bun:test'
import { isDeep } from '../../../test/support/tier.ts'
import type { Change } from '../changes.ts'
import type { Proposal } from '../event.ts'
import { verifyProgram } from '../verify/verify-program.ts'
import { explainRules } from './explain.ts'
import { parseRules } from './parse-rules.ts'
import { rulesOnChanges, ruleThread } from './rule-thread.ts'

const places = { workspace: '/w', home: '/h' }
const parse = (more: object) =>
  parseRules({ text: JSON.stringify({ name: 'r', on: { type: 'propose' }, reason: 'no', ...more }), file: 'r.json', places })
const problems = (more: object) => parse(more).problems
const rules = (more: object) => {
  const read = parse(more)
  expect(read.problems).toEqual([])
  return read.rules
}

const file = { kind: 'file', mode: 0o644, size: 1, sha256: 'x' } as const
const folder = { kind: 'folder', mode: 0o755 } as const
const created = (path: string): Change => ({ path, after: file })
const changed = (path: string): Change => ({ path, before: file, after: { ...file, sha256: 'y' } })
const deleted = (path: string): Change => ({ path, before: file })
const call = (name: string, writes: readonly string[] = []): Proposal => ({
  call: { id: 'a', name, input: {} },
  judgement: { verdict: 'allow', risk: 'medium', rule: 'test', reason: 'r', plan: 'p', summary: 's', writes },
})

const migrations = { changes: { path: { path: 'migrations/**' } } }

describe('a rule about changes', () => {
  test('drops a change set that touches them, and says which', () => {
    const said = { verdict: 'deny', rule: 'rule.r', reason: 'no ("migrations/1.sql")' } as const
    expect(rulesOnChanges(rules(migrations), [created('src/a.ts'), changed('migrations/1.sql')], call('shell'))).toEqual(said)
    expect(rulesOnChanges(rules(migrations), [changed('src/a.ts'), created('a/migrations/1.sql')], call('shell'))).toBeUndefined()
    const many = [1, 2, 3, 4, 5].map((number) => deleted(`migrations/${number}`))
    expect(rulesOnChanges(rules(migrations), many)?.reason).toBe('no ("migrations/1", "migrations/2", "migrations/3" and 2 more paths)')
  })

  test('asks instead where it says so; one that blocks goes before it', () => {
    const asking = rules({ ...migrations, ask: true })
    expect(rulesOnChanges(asking, [created('migrations/x')], call('shell'))).toMatchObject({ verdict: 'ask' })
    expect(rulesOnChanges([...asking, ...rules(migrations)], [created('migrations/x')])).toMatchObject({ verdict: 'deny' })
  })

  test('needs every field of one and the same change', () => {
    const gone = rules({ changes: { path: [{ path: 'a/**' }, { path: 'b' }], change: 'deleted', kind: 'file' } })
    expect(rulesOnChanges(gone, [deleted('b')])).toBeDefined()
    expect(rulesOnChanges(gone, [created('b'), deleted('c'), { path: 'a/x', before: folder }])).toBeUndefined()
    const elsewhere = rules({ changes: { path: { not: { path: 'docs/**' } }, kind: 'file' } })
    expect(rulesOnChanges(elsewhere, [{ path: 'docs', after: folder }, created('docs/a')])).toBeUndefined()
    expect(rulesOnChanges(elsewhere, [created('doc')])).toBeDefined()
    expect(
      rulesOnChanges(rules({ changes: { kind: 'link' } }), [{ path: 'l', after: { kind: 'link', mode: 0o777, target: 'x' } }]),
    ).toBeDefined()
    expect(rulesOnChanges(rules({ changes: { change: 'created' } }), [changed('x')])).toBeUndefined()
  })

  test('holds for the calls that "on" and "when" name, and for whole attempts', () => {
    const npm = { ...migrations, on: { type: 'propose', tool: 'shell' } }
    expect(rulesOnChanges(rules(npm), [created('migrations/x')], call('own_tool'))).toBeUndefined()
    expect(rulesOnChanges(rules(npm), [created('migrations/x')])).toBeDefined()
  })

  test('denies the calls of file tools that would make such a change', () => {
    const denies = (more: object, name: string, path: string) => {
      const [thread] = rules(more).map(ruleThread)
      const { call: asked, judgement } = call(name, [path])
      const state = thread?.next(thread.init, { type: 'propose', id: 'a', call: asked, judgement })
      return state !== undefined && thread?.bid(state).request?.some(({ type }) => type === 'deny') === true
    }
    for (const name of ['file_write', 'file_edit', 'file_delete']) expect(denies(migrations, name, '/w/migrations/1.sql')).toBe(true)
    expect(denies(migrations, 'file_write', '/w/src/1.sql')).toBe(false)
    expect(denies(migrations, 'shell', '/w/migrations/1.sql')).toBe(false)
    const gone = { changes: { ...migrations.changes, change: 'deleted' } }
    expect([denies(gone, 'file_delete', '/w/migrations/x'), denies(gone, 'file_write', '/w/migrations/x')]).toEqual([true, false])
    expect(denies({ ...migrations, ask: true }, 'file_write', '/w/migrations/x')).toBe(false)
  })

  test('is explored with the call of a file tool', () => {
    const threads = rules(migrations).map(ruleThread)
    expect(threads[0]?.samples.map(({ name, writes }) => [name, writes?.at(-1)])).toEqual([['file_write', '/w/migrations/a']])
    const scenes = isDeep ? undefined : ['rules in rounds', 'rules at once']
    expect(verifyProgram({ rules: threads, scenes })).toMatchObject({ ok: true, idleRules: [] })
  }, 120_000)

  test('is told by policy explain for a command, and for a file tool only where it denies the call', () => {
    const said = (name: string, writes: string[] = []) => explainRules(rules(migrations), call(name, writes))
    expect(said('shell')).toMatchObject([{ denies: false, changes: migrations.changes }])
    expect(said('file_write', ['/w/migrations/x'])).toMatchObject([{ denies: true }])
    expect(said('file_write', ['/w/x'])).toEqual([])
  })
})

test.each([
  [{ changes: {} }, 'r.json.changes: must say which changes, such as {"path": {"path": "migrations/**"}}; got {}'],
  [{ changes: 'x' }, 'r.json.changes: must say which changes'],
  [{ changes: { paths: 'x' } }, 'r.json.changes.paths: no such field of a change; allowed: path, kind, change; did you mean "path"?'],
  [
    { changes: { change: 'delete' } },
    'r.json.changes.change: never holds: change is one of created, changed, deleted; did you mean "deleted"?',
  ],
  [{ changes: { path: { path: '../x' } } }, '".." is not allowed in a path glob'],
  [{ ...migrations, until: { tool: 'x' } }, 'r.json.until: does not go with "changes"'],
  [{ ...migrations, atMost: 1 }, 'r.json.atMost: does not go with "changes"'],
  [{ ...migrations, block: ['act'] }, 'r.json.block: "act" is nothing that can be blocked; allowed: apply'],
  [{ block: ['apply'] }, 'r.json.block: "apply" is nothing that can be blocked; allowed: act, think'],
  [{ ...migrations, ask: 'yes' }, 'r.json.ask: must be true, stands in the place of "block", and needs "changes"'],
  [{ ...migrations, ask: true, block: ['apply'] }, 'r.json.ask: must be true'],
  [{ ask: true }, 'r.json.ask: must be true'],
])('%j is a mistake', (more, problem) => expect(problems(more).join('\n')).toContain(problem))
