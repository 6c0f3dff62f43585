import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '../../kit/json.ts'
import type { Judgement, Proposal } from '../event.ts'
import { MAX_TEXT } from './condition.ts'
import { parseRules } from './parse-rules.ts'

const places = { workspace: '/w', home: '/h' }
const parse = (value: unknown) => parseRules({ text: typeof value === 'string' ? value : JSON.stringify(value), file: 'r.json', places })
const problems = (value: unknown) => parse(value).problems
const rule = (more: object = {}) => ({ name: 'r', on: { type: 'propose', tool: 'shell' }, ...more })

const call = (name: string, input: JsonObject, said: Partial<Judgement> = {}): Proposal => ({
  call: { id: 'a', name, input },
  judgement: { verdict: 'allow', risk: 'low', rule: 'test', reason: 'r', plan: 'p', summary: 's', writes: [], ...said },
})
const meant = (when: object, proposal: Proposal, tool?: unknown) => {
  const { rules, problems } = parse({ name: 'r', on: { type: 'propose', tool }, when })
  expect(problems).toEqual([])
  return rules[0]?.target.matches(proposal)
}

describe('a rule that asks for more than to block is refused', () => {
  test.each(['request', 'allow', 'permit'])('%s', (key) => {
    expect(problems(rule({ [key]: [{ type: 'act' }] }))).toEqual([
      `r.json: "${key}" is not allowed: a rule can only block, never ask for anything or permit it`,
    ])
  })

  test.each(['deny', 'halt', 'finish', 'estop', 'cancel', 'stalled', 'approval.decision', 'gate.open', 'clock', 'tool.done'])(
    'blocking %s would weaken the run',
    (type) => {
      const [problem, ...others] = problems(rule({ block: ['act', type] }))
      expect(problem).toBe(`r.json.block: "${type}" may not be blocked: that would weaken the run, not restrict it; allowed: act, think`)
      expect(others).toEqual([])
    },
  )
})

test('everything that is wrong is said at once, with the file, the place, what is allowed and what was probably meant', () => {
  const bad = [{ name: 'Bad Name', on: { type: 'act', tol: 'shell' }, wen: {}, block: ['acts'], atMost: -1, reason: '' }, 7]
  expect(problems(bad)).toEqual([
    'r.json[0]: unknown key "wen"; allowed: name, on, when, changes, block, ask, after, until, atMost, reason; did you mean "when"?',
    'r.json[0].name: must be 1 to 64 of a–z, 0–9, "-" and "_"; got "Bad Name"',
    'r.json[0].on: unknown key "tol"; allowed: type, tool; did you mean "tool"?',
    'r.json[0].on.type: must be "propose", the moment at which the model asks for a call; got "act"',
    'r.json[0].block: "acts" is nothing that can be blocked; allowed: act, think; did you mean "act"?',
    'r.json[0].atMost: must be a whole number from 0 to 1000; got -1',
    'r.json[0].reason: must be a text of at most 1000 characters that tells the model why; got ""',
    'r.json[1]: must be a rule, such as {"name": "no-push", "on": {"type": "propose", "tool": "shell"}}; got 7',
  ])
})

test.each([
  [{ input_path: 'x' }, 'r.json.when.input_path: no such field; allowed: tool, risk, verdict, rule, summary, writes, input, input.NAME'],
  [{ path: 'x' }, 'an argument of the call is written "input.path"'],
  [{ risk: 'hig' }, 'r.json.when.risk: never holds: risk is one of low, medium, high; did you mean "high"?'],
  [{ 'input.path': {} }, 'needs exactly one of glob, path, regex, schema, not'],
  [{ 'input.path': { glob: 'a', regex: 'b' } }, 'needs exactly one of'],
  [{ 'input.path': { globb: 'a' } }, 'unknown key "globb"; allowed: glob, path, regex, schema, not; did you mean "glob"?'],
  [{ 'input.path': [] }, 'an empty list is never fulfilled'],
  [{ 'input.path': { regex: '(' } }, 'r.json.when["input.path"].regex: "(" is never closed'],
  [{ 'input.path': { regex: '(?=a)' } }, 'need backtracking'],
  [{ 'input.path': { path: '../x' } }, '".." is not allowed in a path glob'],
  [{ 'input.path': { path: 'src/' } }, 'write "src/**"'],
  [{ 'input.path': { path: '{/etc,/usr}/x' } }, 'cannot begin with braces'],
  [{ 'input.path': { schema: { type: 'text' } } }, 'r.json.when["input.path"].schema.type: must be of null, boolean'],
  [{ 'input.path': { schema: { patern: 'x' } } }, 'did you mean "pattern"?'],
  [{ 'input.path': { schema: { pattern: '(a)\\1' } } }, 'r.json.when["input.path"].schema.pattern: "\\1" is not allowed'],
  [{ 'input.path': { schema: { $ref: '#' } } }, 'unknown key "$ref"'],
  [{}, 'must name at least one field'],
])('when %j is refused: %s', (when, message) => {
  const [problem = '', ...others] = problems(rule({ when }))
  expect(problem).toContain(message)
  expect(others).toEqual([])
})

test('text that is no JSON, two rules of one name and too many rules are refused; one wrong rule refuses its file', () => {
  expect(problems('{"name": ')[0]).toStartWith('r.json: is not valid JSON')
  expect(problems([rule(), rule()])).toEqual(['r.json: two rules are called "r"; rename one'])
  expect(problems(Array.from({ length: 201 }, (_, at) => rule({ name: `r${at}` })))[0]).toContain('at most 200')
  expect(parse([rule(), { ...rule(), name: 'other', block: [] }]).rules).toEqual([])
  expect(parse(`\ufeff${JSON.stringify(rule())}`).rules.length).toBe(1)
})

describe('a path condition', () => {
  const env = { 'input.path': { path: '**/.env' } }
  test.each(['.env', './.env', 'a/../.env', 'a//.env', '/w/.env', '~/.env', '/.env', 'a/./b/.env/', '/w/../w/.env'])(
    'finds %s however it is written',
    (path) => {
      expect(meant(env, call('file_read', { path }))).toBe(true)
    },
  )
  test.each(['.envrc', 'x.env', '.env/a', '.ENV'])('and not %s', (path) => {
    expect(meant(env, call('file_read', { path }))).toBe(false)
  })

  test('is meant from the workspace unless it begins with /, ~ or two stars', () => {
    expect(meant({ 'input.path': { path: 'src/*' } }, call('t', { path: '/w/src/a' }))).toBe(true)
    expect(meant({ 'input.path': { path: './src/*' } }, call('t', { path: 'src/a' }))).toBe(true)
    expect(meant({ 'input.path': { path: 'src/*' } }, call('t', { path: '/x/src/a' }))).toBe(false)
    expect(meant({ 'input.path': { path: '~/.ssh/**' } }, call('t', { path: '/h/.ssh/id' }))).toBe(true)
    expect(meant({ 'input.path': { path: '/etc/*' } }, call('t', { path: '../etc/passwd' }))).toBe(true)
  })

  test('turned round is a list of what stays allowed: no dots lead out of it', () => {
    const outside = { 'input.path': { not: { path: 'docs/**' } } }
    expect(meant(outside, call('t', { path: 'docs/a' }))).toBe(false)
    expect(meant(outside, call('t', { path: 'docs/../secret' }))).toBe(true)
    expect(meant(outside, call('t', {}))).toBe(true)
    expect(meant({ writes: { not: { path: 'docs/**' } } }, call('t', {}, { writes: ['/w/docs/a', '/etc/b'] }))).toBe(true)
    expect(meant({ writes: { not: { path: 'docs/**' } } }, call('t', {}, { writes: ['/w/docs/a'] }))).toBe(false)
    expect(meant({ writes: { not: { path: 'docs/**' } } }, call('t', {}))).toBe(false)
  })
})

describe('a condition', () => {
  test('on a value, a list of values, a list in the call, a value of another type', () => {
    expect(meant({ risk: ['medium', 'high'] }, call('t', {}, { risk: 'high' }))).toBe(true)
    expect(meant({ risk: ['medium', 'high'] }, call('t', {}))).toBe(false)
    expect(meant({ 'input.n': 3 }, call('t', { n: 3 }))).toBe(true)
    expect(meant({ 'input.n': 3 }, call('t', { n: '3' }))).toBe(false)
    expect(meant({ 'input.args': 'b' }, call('t', { args: ['a', 'b'] }))).toBe(true)
    expect(meant({ 'input.deep.er': { glob: 'x*' } }, call('t', { deep: { er: 'xy' } }))).toBe(true)
    expect(meant({ 'input.c': { regex: 'rm' } }, call('t', { c: { nested: 'rm' } }))).toBe(true)
  })

  test('does not look into what every object has', () => {
    expect(meant({ 'input.constructor': { not: { glob: '*' } } }, call('t', {}))).toBe(true)
    expect(meant({ 'input.constructor.name': { glob: '*' } }, call('t', {}))).toBe(false)
  })

  test('on a text too long to search holds, and so does its opposite', () => {
    const long = call('t', { content: 'x'.repeat(MAX_TEXT + 1) })
    expect(meant({ 'input.content': { regex: 'secret' } }, long)).toBe(true)
    expect(meant({ 'input.content': { not: { regex: 'secret' } } }, long)).toBe(true)
    expect(meant({ 'input.content': { regex: 'secret' } }, call('t', { content: 'x'.repeat(MAX_TEXT) }))).toBe(false)
  })

  test('by schema', () => {
    const schema = {
      type: 'object',
      required: ['method'],
      properties: { method: { enum: ['POST', 'PUT'] }, size: { type: 'integer', minimum: 10, maximum: 20 } },
    }
    expect(meant({ input: { schema } }, call('http', { method: 'POST', size: 15 }))).toBe(true)
    expect(meant({ input: { schema } }, call('http', { method: 'GET' }))).toBe(false)
    expect(meant({ input: { schema } }, call('http', { method: 'PUT', size: 21 }))).toBe(false)
    expect(meant({ input: { schema: { ...schema, additionalProperties: false } } }, call('http', { method: 'PUT', x: 1 }))).toBe(false)
    expect(
      meant({ 'input.a': { schema: { items: { pattern: '^x' }, minItems: 1, contains: { const: 'xy' } } } }, call('t', { a: ['xy', 'x'] })),
    ).toBe(true)
    expect(meant({ 'input.a': { schema: { oneOf: [{ type: 'string' }, { maxLength: 3 }] } } }, call('t', { a: 'abc' }))).toBe(false)
    expect(
      meant(
        { 'input.a': { schema: { not: { anyOf: [{ type: 'null' }, { type: 'number' }] }, allOf: [{ minLength: 2 }] } } },
        call('t', { a: 'ab' }),
      ),
    ).toBe(true)
  })

  test('on the tool: a name, a glob, a list; absent means any', () => {
    const any = { risk: 'low' }
    expect(meant(any, call('mcp_x', {}), 'mcp_*')).toBe(true)
    expect(meant(any, call('shell', {}), ['http', 'shell'])).toBe(true)
    expect(meant(any, call('shells', {}), 'shell')).toBe(false)
    expect(meant(any, call('anything', {}))).toBe(true)
  })
})
