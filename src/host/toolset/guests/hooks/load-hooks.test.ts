import { expect, test } from 'bun:test'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { place } from '../../../../../test/support/host.ts'
import { loadHooks } from './load-hooks.ts'

function loaded(text: string, { project = false, mode = 0o600, name = 'x.toml' } = {}) {
  using at = place('')
  const folder = project ? join(at.cwd, '.braidclaw', 'hooks') : join(at.home, 'hooks')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, name), text)
  chmodSync(join(folder, name), mode)
  if (project) writeFileSync(join(at.home, 'trusted_folders'), `${at.cwd}\n`)
  const { problems, ...rest } = loadHooks(at.setup())
  return { ...rest, problems: problems.map((line) => line.slice(line.indexOf('hooks/') + 6)) }
}

const good = 'on = ["prompt"]\nrun = "true"\n'

test.each([
  ['nothing', '', ['x.toml.on: must be a list of events', 'x.toml.run: must be a command line']],
  [
    'an unknown key',
    `${good}tool = "shell"\n`,
    ['unknown key "tool"; allowed: on, run, tools, paths, timeout_s, sandbox, write; did you mean "tools"?'],
  ],
  ['an unknown event', 'on = ["before_tools"]\nrun = "true"\n', ['did you mean "before_tool"?; got ["before_tools"]']],
  ['no list', `${good}tools = "shell"\n`, ['x.toml.tools: must be a list of patterns, such as ["file_*"]; got "shell"']],
  ['a bad pattern', `${good}paths = ["../x"]\n`, ['x.toml.paths[0].path: ".." is not allowed in a path glob']],
  ['a long time', `${good}timeout_s = 601\n`, ['x.toml.timeout_s: must be a number of seconds from 0.01 to 600; got 601']],
  ['write without the sandbox', 'on = ["after_tool"]\nrun = "true"\nsandbox = false\nwrite = true\n', ['x.toml.write: ']],
  ['write at another event', `${good}write = true\n`, ['x.toml.write: ']],
  ['no TOML', 'on = [', ['x.toml:1:']],
])('%s is refused with the reason', (_, text, expected) => {
  const { hooks, problems } = loaded(text)
  expect(hooks).toEqual([])
  expect(problems).toHaveLength(expected.length)
  for (const [at, part] of expected.entries()) expect(problems[at]).toContain(part)
})

test('a project may not leave the sandbox, and its hooks have names of their own', () => {
  expect(loaded(`${good}sandbox = false\n`, { project: true }).problems).toEqual([
    'x.toml.sandbox: must be true or, in your own home only, false; got false',
  ])
  expect(loaded(good, { project: true }).hooks).toMatchObject([{ name: 'project.x', sandbox: true }])
})

test('a file that everybody may change is refused; hidden and other files are left alone', () => {
  expect(loaded(good, { mode: 0o666 }).problems).toEqual([expect.stringContaining('run: chmod o-w ')])
  expect(loaded('', { name: '.x.toml' })).toMatchObject({ hooks: [], problems: [] })
  expect(loaded('', { name: 'x.sh' })).toMatchObject({ hooks: [], problems: [] })
})

test('one hook for each event of a file', () => {
  const { hooks } = loaded('on = ["stop", "prompt"]\nrun = "true"\ntimeout_s = 2\n')
  expect(hooks).toMatchObject([
    { name: 'x', event: 'prompt', timeoutS: 2, sandbox: true, write: false, strict: true },
    { name: 'x', event: 'stop' },
  ])
})
