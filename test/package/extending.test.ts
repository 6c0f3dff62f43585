/** docs/extending.md, done as it stands there: one file, one line, and the program has it. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { noImportCycle } from '../shape/cycles.ts'
import { crowdedFolders, mutualFolders } from '../shape/folders.ts'
import { laws } from '../shape/laws.ts'
import { isInBrowser } from '../shape/layers.ts'
import { parseModule } from '../shape/module.ts'
import { type Nest, nest } from '../support/cli.ts'
import { isDeep } from '../support/tier.ts'

const root = join(import.meta.dir, '../..')
const page = readFileSync(join(root, 'docs/extending.md'), 'utf8')
/** `path` and the code below it. */
const blocks = [...page.matchAll(/`(src\/[\w/.-]+\.ts)`[^`]*\n\n?```(?:ts|diff)\n(.*?)```/gs)].map(([, path = '', code = '']) => ({
  path,
  code,
}))

/** The test files that go through all tools, kinds of providers, settings, commands or threads; what fails here fails for whoever adds one. */
const testsOfLists = [
  'src/tools/list.test.ts',
  'src/providers/create-provider.test.ts',
  'src/config/load.test.ts',
  'src/config/table.test.ts',
  'src/config/output/show.test.ts',
  'src/cli/args/resolve-command.test.ts',
]

let at: Nest
let copy: string
beforeAll(() => {
  at = nest()
  copy = mkdtempSync(join(tmpdir(), 'braidclaw-extended-'))
  for (const name of ['src', 'bin', 'docs', 'scripts', 'test', 'lib', 'package.json', 'tsconfig.json'])
    cpSync(join(root, name), join(copy, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  for (const { path, code } of blocks) extend(join(copy, path), code)
})
afterAll(() => {
  at[Symbol.dispose]()
  rmSync(copy, { recursive: true, force: true })
})

/** A file that is there gets the line at the end of its list, and its import before the others. */
function extend(path: string, code: string): void {
  writeFileSync(path, existsSync(path) ? listedIn(readFileSync(path, 'utf8'), code) : code)
}

function listedIn(text: string, code: string): string {
  const lines = code
    .replaceAll(/^\+/gm, '')
    .split('\n')
    .filter((line) => line !== '')
  const [imports, entries] = [lines.filter((line) => line.startsWith('import ')), lines.filter((line) => !line.startsWith('import '))]
  const imported = text.replace('\nimport ', `\n${imports.map((line) => `${line}\n`).join('')}import `)
  return imported.replace(/^( *\](?: as const)?)$/m, `${entries.join('\n')}\n$1`)
}

function run(...words: string[]) {
  return runWith({}, ...words)
}

function runWith(env: { readonly [name: string]: string }, ...words: string[]) {
  const { exitCode, stdout, stderr } = Bun.spawnSync([join(copy, 'bin/braidclaw'), ...words], {
    cwd: at.workspace,
    env: { ...at.env, ...env },
    timeout: 50_000,
  })
  return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() }
}

test('each is one new file, and one line in a list: where it has to be imported, a second for that', () => {
  const lines = (path: string, code: string) => (existsSync(join(root, path)) ? code.trim().split('\n').length : 'new')
  expect(blocks.map(({ path, code }) => [path, lines(path, code)])).toEqual([
    ['src/cli/commands/talk/greet.ts', 'new'],
    ['src/cli/commands/list.ts', 1],
    ['src/providers/echo.ts', 'new'],
    ['src/providers/list.ts', 2],
    ['src/tools/builtin/word_count.ts', 'new'],
    ['src/tools/list.ts', 2],
    ['src/runtime/behaviours/one-write.ts', 'new'],
    ['src/runtime/program.ts', 2],
  ])
})

test('they keep the laws', () => {
  const sources = [...new Bun.Glob('src/**/*.ts').scanSync({ cwd: copy })]
  const modules = sources.map((path) => parseModule(path, readFileSync(join(copy, path), 'utf8'))).filter((module) => !isInBrowser(module))
  const added = blocks.filter(({ path }) => !existsSync(join(root, path))).map(({ path }) => path)
  const broken = laws.flatMap(({ name, check }) => check(modules).map((found) => ({ name, ...found })))
  expect(added).toHaveLength(4)
  expect(broken.filter(({ file }) => added.includes(file))).toEqual([])
  expect([noImportCycle(modules), mutualFolders(modules), crowdedFolders(modules)]).toEqual([[], [], []])
})

describe('the provider', () => {
  const table = (...lines: readonly string[]) =>
    `default_provider = "e"\ndefault_model = "echo"\n[providers.models.e]\nkind = "echo"\n${lines.join('\n')}\n`

  test('has its faults told at once, by its own rows', () => {
    at.config(table('times = 20', 'time = 3', 'base_url = "http://x/v1"', 'constructor = 1'))
    const { code, stderr } = run('config', 'validate')
    const file = join(at.home, '.braidclaw/config.toml')
    expect(stderr.trimEnd().split('\n')).toEqual([
      `error: ${file}:5:9: providers.models.e.times: 20 is out of range; must be from 1 to 9 (times)`,
      `error: ${file}:6:1: providers.models.e.time: unknown key; did you mean "times"?`,
      expect.stringMatching(
        /:7:12: providers\.models\.e\.base_url: means nothing for kind = "echo", only for "openai-compatible", .*; remove it$/,
      ),
      `error: ${file}:8:1: providers.models.e.constructor: unknown key; in [providers.models.e] there can be: kind, model, prefix, times`,
      '4 problems found',
    ])
    expect(code).toBe(1)
  })

  test('answers a turn, with its own settings and their defaults', () => {
    const answer = () => {
      const { stderr, ...rest } = run('agent', '-m', 'hello')
      // Where there is no sandbox, a warning says so.
      return { ...rest, stderr: stderr.replace(/^warn: shell tool off .*\n/, '') }
    }
    at.config(table('prefix = "> "', 'times = 2'))
    expect(answer()).toEqual({ code: 0, stdout: '> hello hello\n', stderr: '' })
    at.config(table())
    expect(answer()).toEqual({ code: 0, stdout: 'hello\n', stderr: '' })
  })

  test('stands in what is shown, in the schema and in the docs', () => {
    at.config(table('times = 2'))
    const file = join(at.home, '.braidclaw/config.toml')
    expect(run('config', 'show', '--origin').stdout).toContain(
      `[providers.models.e]\nkind = "echo"  # user: ${file}:4\nmodel = "echo"  # default: built in\ntimes = 2  # user: ${file}:5\n`,
    )
    const { oneOf } = JSON.parse(run('config', 'schema').stdout).properties.providers.properties.models.additionalProperties
    expect(oneOf.filter(({ properties }: { properties: { kind: { const: string } } }) => properties.kind.const === 'echo')).toMatchObject([
      { properties: { times: { type: 'integer', minimum: 1, maximum: 9, default: 1 } } },
    ])
    const docs =
      "const [{ configDocs }, { channelRows }] = await Promise.all([import('./src/config/output/docs.ts'), import('./src/channels/list.ts')])"
    const page = Bun.spawnSync([process.execPath, '-e', `${docs}; console.log(configDocs(channelRows))`], { cwd: copy }).stdout.toString()
    expect(page).toMatch(/^\| `times` \| whole number 1 to 9, times \| `1` \| .*\becho\b.* \| How often the question is repeated\. \|$/m)
    expect(page).toMatch(/^\| `model` \| text \| .*; echo: `"echo"`.* \| .*, echo\b.*$/m)
  })
})

describe('the tool', () => {
  test('is refused outside the workspace, runs inside, and its arguments are checked', () => {
    at.config('')
    at.file('a.txt', 'one two\nthree\n')
    expect(run('tool', 'list').stdout).toMatch(/^ {2}word_count +low +Count the words of a text file\.$/m)
    const count = (path: unknown) => run('tool', 'run', 'word_count', '--json', JSON.stringify({ path }))
    expect(count('/etc/passwd')).toMatchObject({ code: 3, stdout: '', stderr: expect.stringContaining('outside') })
    expect(count(7)).toMatchObject({ code: 3, stderr: expect.stringContaining('"path" must be') })
    expect(count('a.txt')).toMatchObject({ code: 0, stdout: '3 words\n' })
    expect(run('receipt', 'list').stdout).toMatch(/word_count/)
  })

  test('is offered to the model and called in a turn', () => {
    const BRAIDCLAW_MOCK_FIXTURE = at.fixture([
      { tool_calls: [{ name: 'word_count', arguments: { path: 'a.txt' } }] },
      { text: 'it has {{last_tool_result}}' },
    ])
    at.config('[channels.cli]\ntools_allow = ["word_count"]\n')
    expect(run('config', 'validate').code).toBe(0)
    expect(runWith({ BRAIDCLAW_MOCK_FIXTURE }, 'agent', '-m', 'go')).toMatchObject({ code: 0, stdout: 'it has 3 words\n' })
  })
})

describe('the rule thread', () => {
  test('refuses the second file of a run, with its name and reason', () => {
    const write = (path: string) => ({ tool_calls: [{ name: 'file_write', arguments: { path, content: 'x' } }] })
    const BRAIDCLAW_MOCK_FIXTURE = at.fixture([write('first'), write('second'), { text: 'told: {{last_tool_result}}' }])
    at.config('[security]\nautonomy = "full"\n')
    const { stdout } = runWith({ BRAIDCLAW_MOCK_FIXTURE }, 'agent', '-m', 'go', '--output-format', 'json')
    expect(stdout).toContain('one-write: one file a run')
    expect([existsSync(join(at.workspace, 'first')), existsSync(join(at.workspace, 'second'))]).toEqual([true, false])
  })

  // It explores the whole program once more.
  if (isDeep)
    test('is explored by verify with all the others', () => {
      expect(run('verify')).toMatchObject({ code: 0 })
    }, 120_000)
})

test('the command runs, its faults are told, and help and completion know it', () => {
  expect(run('greet', 'Ada', '--times', '2')).toEqual({ code: 0, stdout: 'hello, Ada\nhello, Ada\n', stderr: '' })
  expect(run('greet', '--times', '0', '--tmes')).toEqual({
    code: 2,
    stdout: '',
    stderr:
      'error: no flag "--tmes"; did you mean "--times"?\nerror: --times: 0 is out of range; must be from 1 to 9\nerror: <name> is missing\nSee: braidclaw greet --help\n',
  })
  expect(run('gret').stderr).toContain('did you mean "greet"?')
  expect(run('greet', '--help').stdout).toContain('Who is greeted')
  expect(run('help', 'all').stdout).toMatch(/^ {2}greet +Say hello$/m)
  expect(run('__complete', 'bash', 'gree').stdout).toBe('greet\n')
})

// It runs other test files once more.
if (isDeep)
  test('beside them the tests of all lists pass, as soon as "npm run docs" has renewed the pages', () => {
    const bun = (...words: readonly string[]) => {
      const env = { HOME: at.home, PATH: at.env.PATH }
      return Bun.spawnSync([process.execPath, '--config=/dev/null', '--no-env-file', ...words], { cwd: copy, env, timeout: 100_000 })
    }
    expect(bun('scripts/docs.ts').exitCode).toBe(0)
    const { exitCode, stderr } = bun('test', ...testsOfLists.map((path) => `./${path}`))
    expect(exitCode === 0 ? '' : stderr.toString()).toBe('')
    expect(stderr.toString()).toContain(`across ${testsOfLists.length} files`)
    const screens = bun('test', './test/terminal/terminal-escapes.test.ts', '-t', '^(every command|greet )')
    expect(screens.exitCode === 0 ? '' : screens.stderr.toString()).toBe('')
  }, 120_000)

// It checks the types of the whole program once more.
if (isDeep)
  test('its types hold: nothing has to be cast', () => {
    writeFileSync(join(copy, 'types.json'), JSON.stringify({ extends: './tsconfig.json', include: ['src/main.ts', 'src/**/*.d.ts'] }))
    const tsc = [join(root, 'node_modules/.bin/tsc'), '--noEmit', '-p', join(copy, 'types.json')]
    const { exitCode, stdout } = Bun.spawnSync(tsc)
    expect([exitCode, stdout.toString()]).toEqual([0, ''])
  }, 120_000)
