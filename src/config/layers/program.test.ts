import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { needs } from '../../../test/support/needs.ts'
import { channelRows } from '../../channels/list.ts'
import { describeProblem } from '../config.ts'
import { type Loaded, type LoadInput, loadConfig } from '../load.ts'

const dir = mkdtempSync(join(tmpdir(), 'program-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))
const home = join(dir, 'home')
mkdirSync(home)
let count = 0

type Project = { readonly file?: string; readonly toml?: string; readonly user?: string; readonly link?: string }

function project(source: string, { file = 'braidclaw.config.ts', toml, user = '', link }: Project = {}): string {
  const folder = join(dir, `project-${++count}`)
  mkdirSync(join(folder, '.plaited'), { recursive: true })
  mkdirSync(join(folder, '.braidclaw'))
  writeFileSync(join(home, 'config.toml'), user)
  if (toml) writeFileSync(join(folder, '.braidclaw/config.toml'), toml)
  if (link) symlinkSync(link, join(folder, file))
  else writeFileSync(join(folder, file), source)
  return folder
}

function load(cwd: string, more: Partial<LoadInput> = {}): Loaded {
  const { env, ...rest } = more
  return loadConfig({ home, cwd, channels: channelRows, trusted: () => true, env: { HOME: dir, PATH: process.env.PATH, ...env }, ...rest })
}

function problems(source: string, how?: Project): string[] {
  const folder = project(source, how)
  const loaded = load(folder)
  return loaded.ok ? [] : loaded.problems.map((problem) => describeProblem(problem).replaceAll(folder, '.'))
}

function accepted(folder: string, more?: Partial<LoadInput>): Extract<Loaded, { ok: true }> {
  const loaded = load(folder, more)
  if (!loaded.ok) throw new Error(loaded.problems.map(describeProblem).join('\n'))
  return loaded
}

const kept = () => (existsSync(join(home, 'run')) ? readdirSync(join(home, 'run')) : [])

describe.if(needs('bwrap'))('a configuration program', () => {
  test('of a folder that is not trusted is named and not run', () => {
    const folder = project('export default { agent: { model: "evil" } }')
    const { config, notices } = accepted(folder, { trusted: () => false })
    expect(config.defaultModel).not.toBe('evil')
    expect(notices.join()).toContain(`${folder}/braidclaw.config.ts is ignored: this folder is not trusted`)
    expect(kept()).toEqual([])
  })

  test('that is a link out of the folder, or cannot be read, is refused', () => {
    const outside = join(dir, 'outside.ts')
    writeFileSync(outside, 'export default {}')
    expect(problems('', { link: outside })).toEqual([
      `./braidclaw.config.ts: this file is a link out of the folder, to ${outside}; put the file itself there`,
    ])
    expect(problems('', { link: '/dev/zero' })).toEqual(['./braidclaw.config.ts: this file is not a regular file'])
  })

  const secrets = {
    'of the environment': 'process.env.SECRET_TOKEN ?? "nothing"',
    'of the environment of the evaluator':
      '(() => { try { return console.log.constructor("return JSON.stringify(process.env)")() } catch { return "nothing" } })()',
    'of files': `(() => { try { return console.log.constructor("return process.getBuiltinModule('node:fs').readFileSync('${home}/secret', 'utf8')")() } catch (e) { return "nothing: " + e.message } })()`,
    'of the machine': `(() => { try { return console.log.constructor("return process.getBuiltinModule('node:fs').readdirSync('/').join()")() } catch (e) { return "nothing" } })()`,
  }
  test.each(Object.entries(secrets))('gets no secrets %s', (_, read) => {
    writeFileSync(join(home, 'secret'), 'hush-hush')
    const folder = project(`export default { agent: { model: (${read}).replaceAll('/', '|') } }`)
    const { config } = accepted(folder, { env: { SECRET_TOKEN: 'hush-hush', OPENAI_API_KEY: 'hush-hush' } })
    expect(config.defaultModel).not.toContain('hush')
    expect(config.defaultModel).toMatch(/^(?:nothing.*|\{"HOME":"\|tmp","PWD":"\|tmp"\}|(?=.*bin)[a-z0-9,]+)$/)
    expect(config.defaultModel).not.toMatch(/\b(?:home|etc|root)\b(?!\|secret)/)
  })

  test('has no network', () => {
    const connect =
      'return new Promise(r => process.getBuiltinModule("node:net").connect(80, "1.1.1.1").on("error", e => r(e.code)).on("connect", () => r("connected")))'
    const folder = project(`export default { agent: { model: await console.log.constructor(${JSON.stringify(connect)})() } }`)
    expect(accepted(folder).config.defaultModel).not.toBe('connected')
  })

  test.each<[string, string, RegExp]>([
    ['never ends', 'for (;;) {}', /it did not end within 5 s and was stopped/],
    [
      'waits for ever',
      'await new Promise(() => {}); export default {}',
      /it did not end within 5 s and was stopped|it waits for something that never comes/,
    ],
    [
      'takes too much memory',
      'const a = []; for (;;) a.push(new Array(1e6).fill(Math.random()))',
      /Out of memory|needs more than 1024 MiB|was stopped/,
    ],
    ['returns too much', 'export default { agent: { model: "x".repeat(5e6) } }', /it ended without a result: .*returns more than 4 MB/],
    ['throws', 'throw new Error("sorry")', /it fails: sorry/],
    ['throws null', 'throw null', /it fails: null/],
    ['has a syntax error', 'export default {', /it fails: /],
    ['exports nothing', 'export const config = {}', /it has no default export; write: export default defineConfig\(\{ … \}\)/],
    ['imports a file', 'import x from "./x.ts"; export default x', /it fails: it imports ".\/x.ts"; it can import only defineConfig/],
    ['imports later', 'export default await import("node:fs")', /it fails: /],
    ['is not an object', 'export default "x"', /Invalid input: expected object, received string; found "x"/],
  ])('that %s is stopped with a sentence', (_, source, message) => {
    expect(problems(source)).toEqual([expect.stringMatching(new RegExp(`^\\./braidclaw\\.config\\.ts: .*(?:${message.source})`))])
    expect(kept()).not.toContain(expect.stringContaining('tmp'))
  })

  test('that returns more than plain data is refused with every place', () => {
    const source = `export default { agent: { name() {}, model: 3n }, skills: { root: Promise.resolve('x') },
      sandbox: { enabled: Symbol('s'), limits: { timeout: NaN }, security: { denyRead: ['a', () => 'b'] } } }`
    expect(problems(source).sort()).toEqual(
      [
        'agent.model: Invalid input: expected string, received object; found {"bigint":"3"}',
        'agent.name: Invalid input: expected string, received object; found {"function":"name() {}"}',
        'sandbox.enabled: Invalid input: expected boolean, received object; found {"symbol":"Symbol(s)"}',
        'sandbox.limits.timeout: Invalid input: expected number, received null; found null',
        `sandbox.security.denyRead[1]: Invalid input: expected string, received object; found {"function":"() => \\"b\\""}`,
        'skills.root: Invalid input: expected string, received object; found {}',
      ].map((line) => `./braidclaw.config.ts: ${line}`),
    )
    expect(problems('const a = {}; a.agent = a; export default a')).toEqual([expect.stringMatching(/it fails: .*cyclic/)])
  })

  test('is checked as a whole: every error with its path and its value', () => {
    const source = `export default { agnt: 1, agent: { modle: 3, name: '' }, sandbox: { enabled: 'yes', limits: { timeout: -1 } },
      mcp: { servers: [{ id: 'a', transport: 'htp' }, { id: 'b', name: 'B', transport: 'http' }] } }`
    expect(
      problems(source)
        .map((line) => line.replace('./braidclaw.config.ts: ', ''))
        .sort(),
    ).toEqual([
      'Unrecognized key: "agnt"; did you mean "agent"?',
      'agent.name: Too small: expected string to have >=1 characters; found ""',
      'agent: Unrecognized key: "modle"; did you mean "model"?',
      'mcp.servers[0].name: Invalid input: expected string, received undefined',
      'mcp.servers[0].transport: Invalid option: expected one of "http"|"stdio"; found "htp"',
      'mcp.servers[1]: needs a "url" for http, and a "command" for stdio; found {"id":"b","name":"B","transport":"http"}',
      'sandbox.enabled: Invalid input: expected boolean, received string; found "yes"',
      'sandbox.limits.timeout: Too small: expected number to be >0; found -1',
    ])
  })

  test('stands above the config.toml of the project and below the environment, and names itself as the source', () => {
    const folder = project('export default { agent: { model: "from-program" } }', { toml: 'default_model = "from-toml"' })
    const { config, origins, project: file } = accepted(folder)
    expect(config.defaultModel).toBe('from-program')
    expect(origins.default_model).toEqual({ source: 'project', where: join(folder, 'braidclaw.config.ts') })
    expect(file).toBe(join(folder, '.braidclaw/config.toml'))
    expect(accepted(folder, { env: { BRAIDCLAW_MODEL: 'from-env' } }).config.defaultModel).toBe('from-env')
  })

  test('may name a provider as its model, and no provider that is not there', () => {
    const user =
      '[providers.models.fg]\nkind = "openai-compatible"\nmodel = "gemma"\nbase_url = "http://127.0.0.1:9/v1"\n[providers.models.other]\nkind = "mock"\n'
    const { config } = accepted(project('export default { agent: { model: "fg" } }', { user }))
    expect([config.defaultProvider, config.defaultModel]).toEqual(['fg', 'gemma'])
    expect(problems('export default { agent: { model: "nobody/x" } }', { user })).toEqual([
      expect.stringContaining('./braidclaw.config.ts: default_model: unknown provider "nobody"'),
    ])
  })

  test('may only make the protection of the user stricter', () => {
    const limits = 'sandbox: { enabled: true, security: { denyRead: ["secret", "~/.aws"] }, limits: { timeout: 60_000 } }'
    const folder = project(`export default { ${limits} }`)
    const { config } = accepted(folder)
    expect(config.security.forbiddenPaths).toContain(join(folder, 'secret'))
    expect(config.security.forbiddenPaths).toContain(join(dir, '.aws'))
    expect(config.security.forbiddenPaths).toContain('/etc')
    expect(config.limits.maxRunSeconds).toBe(60)
    expect(problems(`export default { ${limits} }`, { user: '[limits]\nmax_run_seconds = 30\n' })).toEqual([
      './braidclaw.config.ts: limits.max_run_seconds: a project may only make this stricter than your own setting (30); change your own config file instead',
    ])
  })

  test('protects unless it says that the sandbox is off', () => {
    const denied = (enabled: string) => {
      const folder = project(`export default { sandbox: { ${enabled} security: { denyRead: ['secret'] } } }`)
      return accepted(folder).config.security.forbiddenPaths.includes(join(folder, 'secret'))
    }
    expect(['enabled: false,', 'enabled: true,', ''].map(denied)).toEqual([false, true, true])
  })

  test('is evaluated once for each content and NODE_ENV', () => {
    const source = 'export default { agent: { model: `${process.env.NODE_ENV}-${Math.random()}` } }'
    const folder = project(source)
    const model = (env = {}) => accepted(folder, { env }).config.defaultModel
    const first = model()
    expect(first).toMatch(/^undefined-/)
    expect(model()).toBe(first)
    const production = model({ NODE_ENV: 'production' })
    expect(production).toMatch(/^production-/)
    expect([model(), model({ NODE_ENV: 'production' })]).toEqual([first, production])
    writeFileSync(join(folder, 'braidclaw.config.ts'), `${source}\n`)
    expect(model()).not.toBe(first)
    for (const name of kept()) expect(readFileSync(join(home, 'run', name), 'utf8')).toStartWith('{"digest":"')
  })

  test('in both places: the first one counts, and the other one is named', () => {
    const folder = project('export default { agent: { model: "first" } }')
    writeFileSync(join(folder, '.plaited/config.ts'), 'export default { agent: { model: "second" } }')
    const { config, notices } = accepted(folder)
    expect(config.defaultModel).toBe('first')
    expect(notices).toContain(`${folder}/.plaited/config.ts is ignored: ${folder}/braidclaw.config.ts is there too; remove one of them`)
  })
})
