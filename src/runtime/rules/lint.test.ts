import { describe, expect, test } from 'bun:test'
import { lintRules } from './lint.ts'
import { parseRules } from './parse-rules.ts'

const tool = (name: string, ...texts: readonly string[]) => ({
  name,
  parameters: {
    type: 'object',
    properties: Object.fromEntries(texts.map((text) => [text, { type: 'string' }])),
    additionalProperties: false,
  },
})
const builtIn = [
  tool('time'),
  tool('file_read', 'path'),
  tool('file_write', 'path', 'content'),
  tool('shell', 'command', 'timeout'),
  tool('http', 'url', 'method'),
]
const isToolName = (name: string) => /^[a-z][a-z_]*$/.test(name)

function lint(more: object, own: readonly string[] = []) {
  const text = JSON.stringify({ name: 'r', on: { type: 'propose', tool: 'shell' }, ...more })
  const places = { workspace: '/w', home: '/h' }
  const { rules, problems } = parseRules({ text, file: 'r.json', places })
  expect(problems).toEqual([])
  return lintRules({ rules, places, known: { builtIn, own, isToolName } })
}
const on = (tool: unknown) => ({ type: 'propose', ...(tool === undefined ? {} : { tool }) })
const clean = { problems: [], warnings: [] }

describe('a tool that is not there', () => {
  test('is warned of, with the one that was probably meant: it could be an executable', () => {
    expect(lint({ on: on('shel') })).toEqual({
      problems: [],
      warnings: [
        'r.json: rule "r".on.tool: no built-in tool is called "shel", so the rule never applies unless a tool of your own is called that; did you mean "shell"?',
      ],
    })
    expect(lint({ on: on('bash_*') }).warnings[0]).toContain('no built-in tool is called "bash_*"')
  })

  test('is none when the configuration names such an executable', () => {
    expect(lint({ on: on('deploy') }, ['deploy'])).toEqual(clean)
  })

  test('is a mistake when nothing can be called that', () => {
    expect(lint({ on: on('file read') }).problems).toEqual([
      'r.json: rule "r".on.tool: no tool can be called "file read", so the rule never applies; did you mean "file_read"?',
    ])
  })

  test('is said of each in a list, of after and of until', () => {
    expect(lint({ on: on(['shell', 'htp']) }).warnings).toHaveLength(1)
    expect(lint({ after: { tool: 'file_raed' } }).warnings[0]).toContain('so the rule never begins to hold')
    expect(lint({ until: { tool: 'tme' } }).warnings[0]).toContain('so nothing ever ends the rule')
  })
})

describe('an argument that the tool does not have', () => {
  test('is a mistake, with the one that was probably meant', () => {
    expect(lint({ when: { 'input.comand': 'x' } })).toEqual({
      problems: [
        'r.json: rule "r".when["input.comand"]: shell has no argument "comand", so the rule never applies; did you mean "command"?',
      ],
      warnings: [],
    })
    expect(lint({ when: { 'input.command.text': 'x' } }).problems[0]).toContain('shell has no argument "text"')
    expect(lint({ after: { tool: 'http', when: { 'input.uri': 'x' } } }).problems[0]).toContain('did you mean "url"?')
    expect(lint({ until: { tool: 'shell', when: { 'input.cmd': 'x' } } }).problems[0]).toContain('there are: command, timeout')
  })

  test('makes a negated condition hold for every call, and that is said', () => {
    expect(lint({ on: on('file_write'), when: { 'input.pth': { not: { path: 'docs/**' } } } }).problems[0]).toContain(
      'so the condition holds for every call; did you mean "path"?',
    )
  })

  test('is warned of where the rule looks at other tools too', () => {
    expect(lint({ on: on(undefined), when: { 'input.pth': 'x' } })).toEqual({
      problems: [],
      warnings: [
        'r.json: rule "r".when["input.pth"]: the built-in tools have no argument "pth", so the rule never applies; did you mean "path"?',
      ],
    })
    expect(lint({ on: on(['file_read', 'deploy']), when: { 'input.pth': 'x' } }, ['deploy']).problems).toEqual([])
  })

  test('is none when one of the tools has it', () => {
    expect(lint({ on: on(['shell', 'http']), when: { 'input.url': 'x' } })).toEqual(clean)
    expect(lint({ on: on('file_*'), when: { 'input.content': 'x', risk: 'low' } })).toEqual(clean)
    expect(lint({ on: on('deploy'), when: { 'input.anything': 'x' } }, ['deploy'])).toEqual(clean)
  })
})

describe('a rule that blocks what would end it', () => {
  const until = { tool: 'shell', when: { 'input.command': 'npm test' } }

  test('is a mistake', () => {
    const said = ['r.json: rule "r".until: the rule blocks the very calls that would end it; leave them out of "on" and "when"']
    expect(lint({ until }).problems).toEqual(said)
    expect(lint({ on: on('*'), until }).problems).toEqual(said)
    expect(lint({ when: { 'input.command': { glob: 'npm*' } }, until }).problems).toEqual(said)
    expect(
      lint({ when: { 'input.command': { glob: 'npm*' } }, until: { tool: 'shell', when: { 'input.command': { glob: 'npm*' } } } }).problems,
    ).toEqual(said)
    expect(lint({ until, atMost: 0 }).problems).toEqual(said)
  })

  test.each([
    ['other calls end it', { when: { 'input.command': { glob: 'git push*' } }, until }],
    ['some of the calls that end it are not blocked', { when: { 'input.command': 'npm test' }, until: { tool: 'shell' } }],
    [
      'another folder of the same name ends it',
      { on: on('file_read'), when: { 'input.path': { path: 'a/**' } }, until: { tool: 'file_read', when: { 'input.path': '/a/x' } } },
    ],
    ['a glob of tools ends it that is wider', { on: on('{shell,shel?}'), until: { tool: 'shel*' } }],
    ['another tool ends it', { until: { tool: 'file_read' } }],
    ['any tool ends it', { until: { when: { risk: 'low' } } }],
    ['it blocks only from some call on', { until, after: { tool: 'http' } }],
    ['some calls pass', { until, atMost: 1 }],
    ['it blocks no call', { until, block: ['think'] }],
  ])('is none when %s', (_why, more) => {
    expect(lint(more)).toEqual(clean)
  })
})
