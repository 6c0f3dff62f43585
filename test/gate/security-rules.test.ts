/** Whatever rule the source names, the table tells; whatever the table tells, the source uses. */

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { commandRules, rules } from '../../src/security/rules.ts'

const root = join(import.meta.dir, '../..', 'src')
const told = new Set<string>([...Object.keys(rules), ...Object.keys(commandRules)])
const sources = [...new Bun.Glob('**/*.ts').scanSync({ cwd: root })]
  .filter((path) => !/(^|\.)(test|fixture)\.|runtime\/verify\/|security\/(command\/)?rules\.ts$/.test(path))
  .map((path): [string, string] => [path, readFileSync(join(root, path), 'utf8')])

/** Happenings are spelt like rules. */
const events = new Set([...readFileSync(join(root, 'runtime/event.ts'), 'utf8').matchAll(/type: '([a-z.]+)'/g)].map(([, name]) => name))

/** So are the notes of a home. */
for (const [, text] of sources)
  for (const [, note = ''] of text.matchAll(/(?:memory\.note\(|const changed = )'([a-z.]+)'/g)) events.add(note)

/** So are the events of the control plane, which has no rules of the gate, and a file that its worker delivers. */
const isOfControl = (path: string) => path.startsWith('control/')

/** So are the actions of an operator, which have receipts. */
const actions = new Set(['apply', 'drop', 'restore', 'undo', 'redo'].map((name) => `changes.${name}`))

const families = [...new Set([...told].map((name) => name.split('.')[0]))].join('|')
const name = String.raw`([a-z]+\.[a-z_]+)`
const spelt = [
  // of a family that the table knows
  new RegExp(String.raw`['"\`]((?:${families})\.[a-z_]+)['":\`]`, 'g'),
  // of any, where a rule must stand
  new RegExp(String.raw`(?:rule|denied|deniedBy|by|error): ['"\`]${name}['":\`]`, 'g'),
  new RegExp(String.raw`(?:refuse|refused|deny)\(['"\`]${name}['"\`]`, 'g'),
]

function named(text: string): string[] {
  const names = spelt.flatMap((pattern) => [...text.matchAll(pattern)].flatMap(([, found]) => found ?? []))
  return names.filter((name) => !events.has(name) && !actions.has(name))
}

test('no rule is used that the table does not tell', () => {
  const judged = sources.filter(([path]) => !isOfControl(path))
  const untold = judged.flatMap(([path, text]) => named(text).flatMap((name) => (told.has(name) ? [] : [`${path}: ${name}`])))
  expect([...new Set(untold)]).toEqual([])
})

test('no rule is told that nothing uses', () => {
  const used = new Set(sources.flatMap(([, text]) => named(text)))
  expect([...told].filter((name) => name.includes('.') && !used.has(name) && !events.has(name))).toEqual([])
})

test('a rule is seen wherever it may stand', () => {
  const forms = [
    "rule: 'new.one'",
    "denied: 'new.one'",
    "deniedBy: 'new.one'",
    "refuse('new.one'",
    'error: `new.one: ${why}`',
    "pick ? 'url.new' : x",
    '`path.new`',
  ]
  expect(forms.map(named).every((found) => found.length > 0)).toBe(true)
  expect(named("type: 'tool.done'")).toEqual([])
})
