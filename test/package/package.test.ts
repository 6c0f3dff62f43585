/** The npm package: what is in it, and that its launcher finds the Bun of the tree it is installed in, with no bun on PATH and no network. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, normalize } from 'node:path'
import { parseSync } from 'oxc-parser'
import { isDeep } from '../support/tier.ts'

const root = join(import.meta.dir, '../..')
const scratch = mkdtempSync(join(tmpdir(), 'braidclaw-package-'))
const unpacked = join(scratch, 'package')
const files: string[] = []
const inDepth = isDeep ? test : () => {}

beforeAll(() => {
  // An empty HOME: nobody's npm configuration counts.
  const env = { PATH: process.env.PATH ?? '', HOME: scratch, npm_config_cache: join(scratch, 'cache') }
  const packed = Bun.spawnSync(['npm', 'pack', '--json', '--offline', '--pack-destination', scratch], { cwd: root, env })
  const [{ filename, files: listed }] = JSON.parse(packed.stdout.toString())
  files.push(...listed.map(({ path }: { path: string }) => path))
  expect(Bun.spawnSync(['tar', 'xzf', filename], { cwd: scratch }).exitCode).toBe(0)
})

afterAll(() => rmSync(scratch, { recursive: true, force: true }))

describe('in the package', () => {
  test('is what its users need, and nothing that only contributors do', () => {
    const needed = [
      'LICENSE',
      'README.md',
      'CHANGELOG.md',
      'tsconfig.json',
      'bin/braidclaw',
      'bridges/brain.sh',
      'bridges/tool-loop/bash',
      'docs/unix.md',
      'docs/verify-receipts.sh',
      'examples/tools/wordcount.sh',
    ]
    for (const path of needed) expect(files).toContain(path)
    expect(files.filter((path) => /\.test\.|\.fixture\.|^(test|bench|scripts|node_modules|\.)/.test(path))).toEqual([])
    expect(files.filter((path) => path.endsWith('/fixture.ts'))).toEqual([])
    expect(files.length).toBeLessThan(1_600)
  })

  test('is every source that a packed source imports', () => {
    const missing = files
      .filter((path) => path.endsWith('.ts'))
      .flatMap((path) => importsOf(path).filter((target) => !files.includes(target)))
    expect(missing).toEqual([])
  })

  inDepth(
    'is the page of the dashboard, which its gateway serves',
    async () => {
      symlinkSync(join(root, 'node_modules'), join(unpacked, 'node_modules'))
      const child = Bun.spawn([process.execPath, '--config=/dev/null', '--no-env-file', 'test', './test/dashboard/files.test.ts'], {
        cwd: root,
        env: { ...process.env, BRAIDCLAW_TEST_BINARY: join(unpacked, 'bin/braidclaw') },
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      const [said, code] = await Promise.all([child.stderr.text(), child.exited])
      rmSync(join(unpacked, 'node_modules'))
      expect(code === 0 ? '' : said).toBe('')
      expect(said).toMatch(/Ran [1-9]\d* tests/)
    },
    120_000,
  )

  test('is Bun among its dependencies', () => {
    const { dependencies, bin, engines } = JSON.parse(readFileSync(join(unpacked, 'package.json'), 'utf8'))
    expect([dependencies.bun, bin.braidclaw, engines.node]).toEqual([expect.any(String), 'bin/braidclaw', '>=20'])
  })
})

/** What a source of the package imports of the package. */
function importsOf(path: string): readonly string[] {
  const text = readFileSync(join(unpacked, path), 'utf8')
  const { module } = parseSync(path, text)
  const fixed = [...module.staticImports, ...module.staticExports.flatMap(({ entries }) => entries)].map(
    ({ moduleRequest }) => moduleRequest?.value ?? '',
  )
  const lazy = module.dynamicImports.map(({ moduleRequest: { start, end } }) => text.slice(start + 1, end - 1))
  return [...fixed, ...lazy].filter((named) => named.startsWith('.')).map((named) => normalize(join(dirname(path), named)))
}

const realBun = join(root, 'node_modules/bun/bin/bun.exe')
const own = '@oven/bun-linux-x64'

/** As it is before Bun's install script puts the program in its place. */
const placeholder = 'echo "Error: the postinstall script was not run." >&2\nexit 1\n'

function put(path: string, what: 'program' | 'placeholder'): void {
  mkdirSync(dirname(path), { recursive: true })
  if (what === 'program') symlinkSync(realBun, path)
  else writeFileSync(path, placeholder, { mode: 0o755 })
}

/** Where a package manager put things: `home` has the package itself, `bun` is the folder of Bun's package. */
type Layout = (project: string) => { readonly home: string; readonly bun?: string }

const hoisted: Layout = (project) => ({ home: `${project}/node_modules/braidclaw`, bun: `${project}/node_modules/bun` })
const nested: Layout = (project) => ({
  home: `${project}/lib/node_modules/braidclaw`,
  bun: `${project}/lib/node_modules/braidclaw/node_modules/bun`,
})
const deep: Layout = (project) => ({ home: `${project}/node_modules/other/node_modules/braidclaw`, bun: `${project}/node_modules/bun` })

/** The package and all its dependencies but Bun, which is put there as the test says. */
function install(
  layout: Layout,
  ready: 'script ran' | 'script blocked' | 'no program' | 'no bun',
): { readonly home: string; readonly project: string } {
  const project = mkdtempSync(join(scratch, 'project-'))
  const { home, bun } = layout(project)
  cpSync(unpacked, home, { recursive: true })
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (name.startsWith('.') || name === 'bun' || name === '@oven') continue
    mkdirSync(`${home}/node_modules`, { recursive: true })
    symlinkSync(join(root, 'node_modules', name), `${home}/node_modules/${name}`)
  }
  if (bun === undefined || ready === 'no bun') return { home, project }
  put(`${bun}/bin/bun.exe`, ready === 'script ran' ? 'program' : 'placeholder')
  if (ready !== 'no program') mkdirSync(`${dirname(bun)}/${own}/bin`, { recursive: true })
  if (ready === 'script blocked') put(`${dirname(bun)}/${own}/bin/bun`, 'program')
  return { home, project }
}

/** The launcher through a link, as every package manager makes one, from a folder of the test's own. */
function run({ home, project }: { home: string; project: string }, args: readonly string[], stdin?: string) {
  const link = join(project, 'braidclaw')
  if (!existsSync(link)) symlinkSync(join(home, 'bin/braidclaw'), link)
  const [cwd, empty] = [mkdtempSync(join(scratch, 'work-')), mkdtempSync(join(scratch, 'home-'))]
  writeFileSync(join(cwd, 'note.txt'), 'hello')
  const child = Bun.spawnSync([link, ...args], {
    cwd,
    env: { PATH: '/usr/bin:/bin', HOME: empty, LANG: 'C.UTF-8' },
    stdin: stdin === undefined ? 'ignore' : Buffer.from(stdin),
    timeout: 30_000,
  })
  return { code: child.exitCode, stdout: child.stdout.toString(), stderr: child.stderr.toString() }
}

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

describe('the launcher finds Bun', () => {
  test.each<[string, Layout]>([
    ['beside it in a project', hoisted],
    ['below it, as in a global prefix', nested],
    ['in a folder around the one it is in', deep],
  ])('%s, whether or not install scripts ran', (_, layout) => {
    for (const ready of isDeep ? (['script ran', 'script blocked'] as const) : (['script blocked'] as const))
      expect(run(install(layout, ready), ['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
  })

  test("in pnpm's store, where Bun's own package lies beside Bun", () => {
    const pnpm: Layout = (project) => ({ home: `${project}/.pnpm/braidclaw@1/node_modules/braidclaw` })
    for (const ready of isDeep ? (['program', 'placeholder'] as const) : (['placeholder'] as const)) {
      const at = install(pnpm, 'no bun')
      const store = `${at.project}/.pnpm/bun@1/node_modules`
      put(`${store}/bun/bin/bun.exe`, ready)
      if (ready === 'placeholder') put(`${store}/${own}/bin/bun`, 'program')
      symlinkSync(`${store}/bun`, `${dirname(at.home)}/bun`)
      expect(run(at, ['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
    }
  })

  test('or says in one sentence what to do', () => {
    const blocked = install(hoisted, 'no program')
    const command = `cd "${blocked.project}/node_modules/bun" && node install.js`
    expect(run(blocked, ['--version'])).toEqual({
      code: 1,
      stdout: '',
      stderr: `braidclaw: the install script of Bun was not run; run it with: ${command}\n`,
    })
    const missing = install(hoisted, 'no bun')
    expect(run(missing, ['--version'])).toEqual({
      code: 1,
      stdout: '',
      stderr: `braidclaw: the package "bun" is missing beside ${missing.home}; install braidclaw again with its dependencies\n`,
    })
  })

  test('never takes one from the folder it is run in', () => {
    const at = install(hoisted, 'no bun')
    const evil = join(at.project, 'evil')
    put(`${evil}/node_modules/bun/bin/bun.exe`, 'program')
    put(`${evil}/node_modules/${own}/bin/bun`, 'program')
    const child = Bun.spawnSync([join(at.home, 'bin/braidclaw'), '--version'], { cwd: evil, env: { PATH: '/usr/bin:/bin', HOME: evil } })
    expect([child.exitCode, child.stdout.toString()]).toEqual([1, ''])
  })
})

inDepth(
  "installed, a program of somebody's own is type-checked with Bun's usual settings, and may not request what is ours",
  () => {
    const { project } = install(hoisted, 'script blocked')
    const usual = {
      ...{ lib: ['ESNext'], target: 'ESNext', module: 'Preserve', moduleDetection: 'force', moduleResolution: 'bundler', types: ['bun'] },
      ...{ allowImportingTsExtensions: true, verbatimModuleSyntax: true, noEmit: true, strict: true, skipLibCheck: true },
      ...{ noFallthroughCasesInSwitch: true, noUncheckedIndexedAccess: true, noImplicitOverride: true },
    }
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions: usual, files: ['program.ts'] }))
    symlinkSync(join(root, 'node_modules/@types'), join(project, 'node_modules/@types'))
    symlinkSync(join(root, 'node_modules/bun-types'), join(project, 'node_modules/bun-types'))
    const check = (type: string) => {
      writeFileSync(join(project, 'program.ts'), ownThread.replace('TYPE', type))
      const { exitCode, stdout } = Bun.spawnSync([
        realBun,
        join(root, 'node_modules/typescript/bin/tsc'),
        '-p',
        project,
        '--pretty',
        'false',
      ])
      return { exitCode, stdout: stdout.toString() }
    }
    expect(check('user.mine')).toEqual({ exitCode: 0, stdout: '' })
    const { exitCode, stdout } = check('approval.decision')
    expect(exitCode).toBeGreaterThan(0)
    expect(stdout).toContain(`Type '"approval.decision"' is not assignable to type '"propose" | \`user.`)
  },
  120_000,
)

const ownThread = `import { createAgent, replay, type Thread, verifyAgent, veto } from 'braidclaw'
const own: Thread<number> = {
  name: 'own',
  init: 0,
  bid: (n) => ({
    request: n > 0 ? [{ type: 'TYPE' }] : [],
    block: [{ type: 'act', match: ({ call }) => call.name === 'shell', reason: 'no shell' }],
  }),
  next: (n) => n + 1,
}
const threads = [own, veto('no-network', ({ call }) => call.name === 'http')]
const agent = createAgent({ threads })
console.log(await agent.addThread(own), await verifyAgent({ threads }), await replay({ runId: 'last', threads }))
`

test('installed, it answers, filters and checks itself', () => {
  const at = install(hoisted, 'script blocked')
  const asked = run(at, ['agent', '-C', '.', '-m', 'What files are here?'])
  expect([asked.code, asked.stdout]).toEqual([0, expect.stringContaining('note.txt (5 bytes)')])
  const filtered = run(at, [], 'hello\n')
  expect([filtered.code, filtered.stdout]).toEqual([0, expect.stringContaining('Hello')])
  expect(run(at, ['doctor']).stdout).toContain('✓ provider')
}, 120_000)
