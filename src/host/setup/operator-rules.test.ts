import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseRules } from '../../runtime/rules/parse-rules.ts'
import { ruleThread, threadsOf } from '../../runtime/rules/rule-thread.ts'
import { verifyProgram } from '../../runtime/verify/verify-program.ts'
import { loadRules, readRules } from './operator-rules.ts'

const base = mkdtempSync(join(tmpdir(), 'braidclaw-rules-'))
afterAll(() => rmSync(base, { recursive: true, force: true }))

const state = { dir: '' }
beforeEach(() => {
  state.dir = mkdtempSync(join(base, 'case-'))
  mkdirSync(join(state.dir, 'ws'))
})
const rule = (name: string, more: object = {}) => JSON.stringify({ name, on: { type: 'propose', tool: 'http' }, ...more })
const put = (path: string, text: string) => {
  mkdirSync(join(state.dir, path, '..'), { recursive: true })
  writeFileSync(join(state.dir, path), text)
  return join(state.dir, path)
}
const load = (trusted: boolean, workspace = 'ws') =>
  loadRules({ home: join(state.dir, 'home'), userHome: state.dir, workspace: join(state.dir, workspace), trusted })
const names = ({ rules }: ReturnType<typeof load>) => rules.map(({ name }) => name)

test('without any folder there are no rules and nothing is said', () => {
  expect(load(true)).toEqual({ rules: [], written: [], notices: [], problems: [] })
})

test('the folder of an untrusted workspace is not obeyed, and that is said', () => {
  put('ws/.braidclaw/rules/a.json', rule('a'))
  const { rules, notices, problems } = load(false)
  expect({ rules, problems }).toEqual({ rules: [], problems: [] })
  expect(notices).toEqual([
    `${join(state.dir, 'ws/.braidclaw/rules')} is ignored: this folder is not trusted. Read it, then trust the folder with: braidclaw trust ${join(state.dir, 'ws')}`,
  ])
})

test('the user’s rules come first, then those of a trusted workspace, each folder in the order of names', () => {
  put('home/rules/b.json', rule('b'))
  put('home/rules/a.json', `[${rule('a2')}, ${rule('a1')}]`)
  put('ws/.braidclaw/rules/c.json', rule('c'))
  expect(names(load(true))).toEqual(['rule.a2', 'rule.a1', 'rule.b', 'rule.c'])
  expect(names(load(false))).toEqual(['rule.a2', 'rule.a1', 'rule.b'])
})

test('a home that is the workspace’s own folder is read once', () => {
  put('home/rules/a.json', rule('a'))
  symlinkSync(join(state.dir, 'home'), join(state.dir, 'ws/.braidclaw'))
  expect(load(true).problems).toEqual([])
  expect(names(load(true))).toEqual(['rule.a'])
})

describe('a file that cannot be used is a problem, never a rule less', () => {
  test.each([
    ['broken', '{', 'is not valid JSON'],
    ['wrong', rule('x', { request: [] }), 'a rule can only block'],
    ['binary', '\u0000', 'is not valid JSON'],
  ])('%s', (_name, text, message) => {
    const file = put('home/rules/a.json', text)
    const [problem = '', ...others] = load(true).problems
    expect(problem).toStartWith(file)
    expect(problem).toContain(message)
    expect(others).toEqual([])
  })

  test('a folder in place of a file, a FIFO, a file in place of the folder', () => {
    mkdirSync(join(state.dir, 'home/rules/a.json'), { recursive: true })
    Bun.spawnSync(['mkfifo', join(state.dir, 'home/rules/b.json')])
    expect(load(true).problems.map((problem) => problem.replace(state.dir, ''))).toEqual([
      expect.stringContaining('/home/rules/a.json is a folder'),
      expect.stringContaining('/home/rules/b.json is not a regular file'),
    ])
    put('ws/.braidclaw/rules', 'x')
    expect(load(true).problems.at(-1)).toContain('.braidclaw/rules cannot be read')
  })

  test('a link that leads nowhere', () => {
    mkdirSync(join(state.dir, 'home/rules'), { recursive: true })
    symlinkSync(join(state.dir, 'gone'), join(state.dir, 'home/rules/a.json'))
    expect(load(true).problems[0]).toContain('does not exist')
  })

  test('one name in two files, said with both', () => {
    const files = [put('home/rules/a.json', rule('same')), put('ws/.braidclaw/rules/b.json', rule('same'))]
    expect(load(true).problems).toEqual([`two rules are called "same" (${files.join(', ')}); rename one`])
  })
})

test('other files are named, hidden ones are not, and a file that everybody can write is', () => {
  put('home/rules/README.md', 'x')
  put('home/rules/.a.json.swp', 'x')
  chmodSync(put('home/rules/a.json', rule('a')), 0o666)
  expect(load(true).notices.map((notice) => notice.replace(state.dir, ''))).toEqual([
    expect.stringContaining('/home/rules/README.md is ignored'),
    expect.stringContaining('/home/rules/a.json can be changed by every user'),
  ])
})

test('what goes into the journal comes back as the same rules, reason and all', () => {
  put('home/rules/a.json', `[${rule('a')}, ${rule('b', { when: { 'input.path': { path: 'x' } }, after: { tool: 'shell' }, atMost: 2 })}]`)
  const { journal, rules } = load(true)
  const again = threadsOf(JSON.parse(JSON.stringify(journal)))
  expect(JSON.stringify(again)).toBe(JSON.stringify(rules))
  for (const odd of [
    null,
    {},
    { ...journal, list: [{}] },
    { ...journal, list: [{ file: 'x', rule: { name: 'x' } }] },
    { ...journal, home: 3 },
  ])
    expect(threadsOf(odd)).toBeUndefined()
})

test('the examples of the documentation are rules, keep every property, and each is seen to block', () => {
  const page = readFileSync(join(import.meta.dir, '../../../docs/rules.md'), 'utf8')
  const examples = [...page.matchAll(/```json\n([\s\S]*?)```/g)].map(([, text = '']) => text)
  expect(examples.length).toBe(7)
  const rules = examples.flatMap((text, at) => {
    const found = parseRules({ text, file: `example-${at}`, places: { workspace: '/w', home: '/h' } })
    expect(found.problems).toEqual([])
    return found.rules
  })
  const report = verifyProgram({ rules: rules.map(ruleThread) })
  expect({ ok: report.ok, idle: report.idleRules }).toEqual({ ok: true, idle: [] })
  const asked = (command: string) =>
    rules
      .find(({ name }) => name === 'no-force-push')
      ?.target.matches({
        call: { id: 'a', name: 'shell', input: { command } },
        judgement: { verdict: 'allow', risk: 'low', rule: '', reason: '', plan: '', summary: '', writes: [] },
      })
  for (const command of [
    'git push --force',
    'git push -f',
    'git -C x push origin +main',
    'git push \\\n --force-with-lease',
    'git push -uf',
  ])
    expect({ command, blocked: asked(command) }).toEqual({ command, blocked: true })
  for (const command of ['git push origin main', 'git status', 'gitk push -f'])
    expect({ command, blocked: asked(command) }).toEqual({ command, blocked: false })
}, 120_000)

test('a file for verify that does not exist is a problem', () => {
  expect(readRules('/nowhere/x.json', { workspace: '/w', home: '/h' }).problems).toEqual(['/nowhere/x.json does not exist'])
})
