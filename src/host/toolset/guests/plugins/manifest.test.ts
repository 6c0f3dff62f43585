/** Tests what a manifest may say. The first text is seed 001's, word for word. */

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { echoManifest } from '../../../../../test/support/echo-plugin.ts'
import { readManifest } from './manifest.ts'

const seed = echoManifest()

const problemsOf = (text: string) => {
  const read = readManifest(text)
  return read.ok ? [] : read.problems
}

test("the seed's manifest is read as it stands, and declares nothing but a tool", () => {
  expect(readManifest(seed)).toEqual({
    ok: true,
    manifest: {
      name: 'echo-plugin',
      version: '0.1.0',
      description: '',
      capabilities: ['tool'],
      tools: [{ spec: { name: 'echo', description: 'Echoes input', parameters: { type: 'object' } }, command: 'echo-plugin' }],
      hooks: [],
      tests: [],
      permissions: { files: 'none', hosts: [], variables: [] },
    },
  })
})

test('hooks, a process and permissions are read', () => {
  const text = `${seed.replace('["tool"]', '["hook", "tool"]\nprocess = "bin/serve"').replace('command = "./echo-plugin"\n', '')}
[permissions]
files = "read"
hosts = ["api.example.org", "*.example.net"]
variables = ["API_KEY"]

[[hooks]]
event = "before_tool"
command = "./check"
match = "shell"

[[hooks]]
event = "stop"
command = "check"
`
  expect(readManifest(text)).toMatchObject({
    ok: true,
    manifest: {
      process: 'bin/serve',
      capabilities: ['tool', 'hook'],
      tools: [{ spec: { name: 'echo' } }],
      hooks: [
        { event: 'before_tool', command: 'check', match: 'shell' },
        { event: 'stop', command: 'check' },
      ],
      permissions: { files: 'read', hosts: ['api.example.org', '*.example.net'], variables: ['API_KEY'] },
    },
  })
})

test('every problem is named at once, with the line of its own table', () => {
  const text = `${seed}
[[tools]]
name = "two words"
description = "d"
command = "../run"
schema = { type = "string" }
shema = 1

[permissions]
files = "all"
hosts = ["https://example.org"]
variables = ["api key"]
`
  const problems = problemsOf(text.replace('"0.1.0"', '0.1'))
  expect(problems.map((problem) => problem.replace(/: .*/, ''))).toEqual([
    'line 2',
    'line 11',
    'line 14',
    'line 16',
    'line 19',
    'line 20',
    'line 21',
  ])
  expect(problems.join('\n')).toContain('calls itself "two words"')
  expect(problems.join('\n')).toContain('tools.1.shema is not a field of this table; did you mean "schema"?')
})

test.each([
  ['name = "echo-plugin"', 'name = "Echo Plugin"', 'name is made of small letters'],
  ['name = "echo-plugin"', 'name = "../x"', 'name is made of small letters'],
  ['version = "0.1.0"', 'version = "\\u001b[31m"', 'version is a version such as'],
  ['["tool"]', '["tools"]', 'did you mean "tool"?'],
  ['["tool"]', '[]', 'name "tool" and write [[tools]], or neither'],
  ['["tool"]', '["tool", "hook"]', 'name "hook" and write [[hooks]], or neither'],
  ['command = "./echo-plugin"', 'command = "/bin/sh"', 'is the path of a file of the plugin'],
  ['command = "./echo-plugin"', 'command = "a/../../b"', 'is the path of a file of the plugin'],
  ['command = "./echo-plugin"\n', '', 'or the plugin has a process'],
  ['schema = { type = "object" }', 'schema = { type = "object", when = 2026-01-01 }', 'schema holds what JSON has not, such as a date'],
  ['{ type = "object" }', '{ type = "object", properties = { a = { pattern = "(?=x)" } } }', 'cannot be checked'],
  ['[[tools]]', '[[tools]]\nname = "echo"', 'not valid TOML'],
  ['["tool"]', '["tool"]\nprocess = "p"\npermissions = { files = "write" }', 'is "none" or "read" for a plugin with a process'],
])('in place of %j, %j is refused', (from, to, says) => {
  expect(problemsOf(seed)).toEqual([])
  expect(problemsOf(seed.replace(from, to)).join('\n')).toContain(says)
})

test('two tools of one name are refused', () => {
  expect(problemsOf(`${seed}${seed.slice(seed.indexOf('[['))}`).join('\n')).toContain('has two tools "echo"')
})

test('no text makes it throw', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.string().map((text) => seed + text),
      ),
      (text) => {
        expect(typeof readManifest(text).ok).toBe('boolean')
      },
    ),
  )
})
