import { describe, expect, test } from 'bun:test'
import type { Change, ChangeReview, EntryState } from '../../runtime/changes.ts'
import type { PlannedCommand } from '../plan.ts'
import {
  answeredBy,
  changeKeyOf,
  changeRuleFor,
  changeRuleText,
  coversChanges,
  parseChangeRule,
  pathRuleFor,
  tellChangeRule,
} from './standing-changes.ts'

const file = (mode = 0o644): EntryState => ({ kind: 'file', mode, size: 1, sha256: 'x' })
const folder: EntryState = { kind: 'folder', mode: 0o755 }
const made = (path: string, after: EntryState = file()): Change => ({ path, after })
const edited = (path: string): Change => ({ path, before: file(), after: file() })
const removed = (path: string): Change => ({ path, before: file() })

const script = (text: string, more: Partial<PlannedCommand> = {}) => ({
  always: undefined,
  commands: [{ plan: { kind: 'script' as const, script: text }, cwd: '/ws', view: 'private' as const, ...more }],
})
const npmTest = script('npm test')
const asks: ChangeReview = { digest: 'd', verdict: 'ask', rule: 'changes.supervised', reason: '', summary: '', count: 1 }

const rule = { command: changeKeyOf(npmTest) ?? '', patterns: ['coverage/**', 'out/log.txt'] }
const covers = (changes: readonly Change[], plan: Parameters<typeof changeKeyOf>[0] = npmTest, review = asks) =>
  coversChanges(rule, { plan, changes, review })

describe('does not answer for', () => {
  test.each<[string, readonly Change[]]>([
    ['another path', [edited('coverage/a'), edited('src/a.ts')]],
    ['a name that only begins like the folder', [made('coverage-old/a')]],
    ['a path below a single file', [made('out/log.txt/x')]],
    ['the folder above', [removed('out'), made('out', file())]],
    ['a file in place of the folder above', [made('out', file())]],
    ['a new executable', [made('coverage/run', file(0o755))]],
    ['a link', [made('coverage/l', { kind: 'link', mode: 0o777, target: '/etc/passwd' })]],
    ['an executable in place of a folder', [{ path: 'coverage/x', before: folder, after: file(0o755) }]],
    ['a folder with an unlucky name', [made('undefined/x')]],
    ['a device or pipe', [made('coverage/p', { kind: 'other', mode: 0o644 })]],
    ['a name that is not UTF-8', [{ ...made('coverage/\ufffd'), bytes: '/w==' }]],
    ['what tools run unasked', [edited('coverage/package.json'), edited('coverage/conftest.py')]],
    ['nothing', []],
  ])('%s', (_, changes) => expect(covers(changes)).toBe(false))

  test('another command, another folder, network or the workspace itself', () => {
    const one = [edited('coverage/a')]
    expect(covers(one, script('npm test; npm run x'))).toBe(false)
    expect(covers(one, script('npm test', { cwd: '/ws/sub' }))).toBe(false)
    expect(covers(one, script('npm test', { network: ['a.org'] }))).toBe(false)
    expect(covers(one, script('npm test', { view: 'direct' }))).toBe(false)
    expect(covers(one, { ...npmTest, commands: [] })).toBe(false)
  })

  test('a question with another reason, and what is dropped', () => {
    const one = [edited('coverage/a')]
    for (const review of [
      { ...asks, rule: 'changes.secret' },
      { ...asks, rule: 'changes.limits' },
      { ...asks, verdict: 'deny' as const },
    ])
      expect(covers(one, npmTest, review)).toBe(false)
  })
})

test('answers for the paths of the rule and the folders that lead to them', () => {
  expect(covers([made('coverage', folder), made('coverage/deep/a.md'), removed('coverage/b.md')])).toBe(true)
  expect(covers([made('out', folder), edited('out/log.txt')])).toBe(true)
})

describe('the rule of an answer', () => {
  test('is for the executable and sub-command where there is such a key, else for exactly this command', () => {
    const always = { executable: '/usr/bin/git', subcommand: 'commit' }
    expect(changeKeyOf({ ...npmTest, always })).toBe('["/usr/bin/git","commit"]')
    expect(changeKeyOf(npmTest)).toBe('{"cwd":"/ws","exactly":"npm test"}')
  })

  test('names the paths, or their folders when they are many, and covers the changes it was made from', () => {
    expect(changeRuleFor(npmTest, [made('out', folder), made('out/b.md'), edited('a.md')])?.patterns).toEqual(['a.md', 'out/b.md'])
    const many = Array.from({ length: 300 }, (_, at) => made(`.git/objects/${at % 40}/o${at}`))
    const wide = changeRuleFor(npmTest, [...many, edited('.git/index')])
    expect(wide?.patterns).toEqual(['.git/index', '.git/objects/**'])
    expect(wide && coversChanges(wide, { plan: npmTest, changes: many, review: asks })).toBe(true)
  })

  test('does not exist for what is always asked about, and for too many paths at the root', () => {
    expect(changeRuleFor(npmTest, [edited('Makefile')])).toBeUndefined()
    expect(changeRuleFor(npmTest, [made('run.sh', file(0o755))])).toBeUndefined()
    expect(changeRuleFor(npmTest, [])).toBeUndefined()
    expect(changeRuleFor({ ...npmTest, commands: [] }, [edited('a.md')])).toBeUndefined()
    expect(
      changeRuleFor(
        npmTest,
        Array.from({ length: 13 }, (_, at) => made(`f${at}.md`)),
      ),
    ).toBeUndefined()
  })

  test('comes back from the store as it was, and nothing else does', () => {
    expect(parseChangeRule(changeRuleText(rule))).toEqual(rule)
    for (const text of [
      '',
      '[]',
      '{"command":"x"}',
      '{"command":1,"patterns":["a"]}',
      '{"command":"x","patterns":["**"]}',
      '{"command":"x","patterns":["/**"]}',
      '{"command":"x","patterns":[1]}',
    ])
      expect(parseChangeRule(text)).toBeUndefined()
  })

  test('may be about a git directory outside the workspace, and never about everything outside', () => {
    const below = ['HEAD', 'logs/HEAD', 'refs/heads/x', ...Array.from({ length: 20 }, (_, nth) => `objects/${nth + 10}/x`)]
    const changes = below.map((name) => edited(`/srv/main/.git/${name}`))
    const given = changeRuleFor(npmTest, changes)
    const kept = given && parseChangeRule(changeRuleText(given))
    expect(kept?.patterns).toEqual(['/srv/main/.git/HEAD', '/srv/main/.git/logs/**', '/srv/main/.git/objects/**', '/srv/main/.git/refs/**'])
    expect(kept && coversChanges(kept, { plan: npmTest, changes, review: asks })).toBe(true)
    expect(kept && coversChanges(kept, { plan: npmTest, changes: [edited('/srv/other/.git/HEAD')], review: asks })).toBe(false)
    expect(changeRuleFor(npmTest, [...changes, ...Array.from({ length: 12 }, (_, nth) => edited(`${nth}.md`))])).toBeUndefined()
  })

  test('reads as a sentence', () => {
    expect(tellChangeRule(rule)).toBe('npm test, while it changes only coverage/**, out/log.txt')
    expect(tellChangeRule({ command: '["/usr/bin/git","commit"]', patterns: ['.git/**'] })).toBe(
      '/usr/bin/git commit, while it changes only .git/**',
    )
  })
})

describe('an answer to paths', () => {
  const paths = pathRuleFor('/ws', ['.toolrc', 'a/Makefile'])

  test('holds for these paths of this workspace alone, answers for no command, and comes back from the store', () => {
    const kept = paths && parseChangeRule(changeRuleText(paths))
    const rules = [rule, ...(kept ? [kept] : [])]
    const places = ['.toolrc', 'a/Makefile', 'Makefile', 'a', '.toolrc/x', 'out/log.txt']
    expect(places.filter(answeredBy(rules, '/ws'))).toEqual(['.toolrc', 'a/Makefile'])
    expect(places.filter(answeredBy(rules, '/other'))).toEqual([])
    expect(kept && coversChanges(kept, { plan: npmTest, changes: [edited('.toolrc')], review: asks })).toBe(false)
    expect(kept && tellChangeRule(kept)).toBe('any change of .toolrc, a/Makefile in /ws')
  })

  test('does not exist for none and for more than a person reads', () => {
    expect([pathRuleFor('/ws', []), pathRuleFor('/ws', Array.from({ length: 13 }, String))]).toEqual([undefined, undefined])
  })
})
