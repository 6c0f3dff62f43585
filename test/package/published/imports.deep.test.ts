/** What is published, imported by programs of others: on Node 20, 22 and 24, by strict TypeScript, and as two tools judge packages. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { entries, fileOf, platformName, platforms } from '../../../scripts/packages/entries.ts'
import { packAll } from '../../../scripts/packages/stage.ts'
import { given } from '../../support/needs.ts'
import { here, installGlobally, installInProject, machine, type Packages, packages, version } from './packages.ts'

let made: Packages
let project: string
beforeAll(async () => {
  made = await packages()
  project = installInProject(machine(made.folder), made.tarballs)
}, 120_000)
afterAll(() => made[Symbol.dispose]())

/** Installs packages of the registry below a temporary folder of this run. @returns its node_modules; undefined when it cannot be reached */
function fromRegistry(name: string, ...wanted: string[]): string | undefined {
  const folder = join(tools, name)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"private":true}')
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries=0', '--prefix', folder]
  // Node has certificates of its own; a network that inspects what it carries is known to the machine alone.
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: '/etc/ssl/certs/ca-certificates.crt' }
  const { exitCode } = Bun.spawnSync(['npm', 'install', ...flags, ...wanted], { env, timeout: 60_000 })
  return exitCode === 0 ? join(folder, 'node_modules') : undefined
}
const tools = join(process.env.TMPDIR ?? '/tmp', `braidclaw-tools-${process.pid}`)
afterAll(() => void Bun.spawnSync(['rm', '-rf', tools]))

const nodePackage = `node-${process.platform}-${process.arch}`
const subpathsOn = (where: 'node' | 'bun') =>
  entries.filter(({ node }) => where === 'bun' || node !== 'none').map(({ subpath }) => `braidclaw${subpath.slice(1)}`)

describe.each(['20', '22', '24'])('on Node %s', (major) => {
  const own = Bun.spawnSync(['node', '--version']).stdout.toString().startsWith(`v${major}.`)
  const modules = own ? undefined : fromRegistry(`node-${major}`, `${nodePackage}@${major}`)
  const node = own ? (Bun.which('node') ?? 'node') : modules && join(modules, nodePackage, 'bin/node')

  test.if(given(node !== undefined, `Node ${major} of the registry`))(
    'it installs, answers, and every subpath can be imported',
    () => {
      const at = machine(made.folder, node)
      expect(at.run(['node', '--version']).stdout).toStartWith(`v${major}.`)
      const asked = at.run([installGlobally(at, made.tarballs), 'agent', '-m', 'What time is it?'])
      expect([asked.code, asked.stdout]).toEqual([0, expect.stringMatching(/\d:\d\d/)])
      for (const name of subpathsOn('node')) {
        const { code, stdout, stderr } = at.run(['node', '--input-type=module', '-e', timed(name)], { cwd: project })
        expect({ name, code, stderr }).toEqual({ name, code: 0, stderr: '' })
        console.log(`Node ${major}  ${name}  ${stdout.trim()}`)
      }
    },
    120_000,
  )
})

/** Prints the milliseconds of an import and the names that it gave. */
function timed(name: string): string {
  return `const start = performance.now(), before = process.cpuUsage(); const names = Object.keys(await import('${name}')); const { user, system } = process.cpuUsage(before); console.log((performance.now() - start).toFixed(1) + ' ms (processor ' + ((user + system) / 1000).toFixed(1) + ' ms)', names.join(' '))`
}

test('in Bun every subpath can be imported', () => {
  const at = machine(made.folder)
  for (const name of subpathsOn('bun')) {
    const { code, stdout, stderr } = at.run([process.execPath, '--config=/dev/null', '--no-install', '-e', timed(name)], { cwd: project })
    expect({ name, code, stderr }).toEqual({ name, code: 0, stderr: '' })
    console.log(`Bun  ${name}  ${stdout.trim()}`)
  }
}, 120_000)

describe('strict TypeScript compiles what imports every subpath', () => {
  const program = entries
    .map(({ subpath }, at) => `import * as all${at} from 'braidclaw${subpath.slice(1)}'\nexport type Names${at} = keyof typeof all${at}\n`)
    .join('')
  const usage = `import { type AgentEvent, createAgent } from 'braidclaw'
export async function ask(): Promise<readonly AgentEvent[]> {
  const agent = createAgent({ cwd: '.' })
  const events: AgentEvent[] = []
  for await (const event of agent.run('hello')) if (event.type === 'text') events.push(event)
  return events
}
`
  const projects = [
    { module: 'nodenext', moduleResolution: 'nodenext' },
    { module: 'esnext', moduleResolution: 'bundler' },
  ]
  for (const typescript of ['5.9.3', '7.0.2']) {
    const modules = fromRegistry(`typescript-${typescript}`, `typescript@${typescript}`)
    test.if(given(modules !== undefined, `TypeScript ${typescript} of the registry`)).each(projects)(
      `${typescript}: %o`,
      (options) => {
        const at = machine(made.folder)
        const compilerOptions = { ...options, target: 'es2022', strict: true, skipLibCheck: false, noEmit: true, types: [] }
        writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['program.ts', 'usage.ts'] }))
        writeFileSync(join(project, 'program.ts'), program)
        writeFileSync(join(project, 'usage.ts'), usage)
        const tsc = ['node', join(modules ?? '', 'typescript/bin/tsc'), '-p', '.', '--pretty', 'false']
        expect(at.run(tsc, { cwd: project })).toEqual({ code: 0, stdout: '', stderr: '' })
        writeFileSync(join(project, 'usage.ts'), usage.replace("cwd: '.'", 'cwd: 1'))
        expect(at.run(tsc, { cwd: project }).stdout).toContain("Type 'number' is not assignable to type 'string'")
      },
      120_000,
    )
  }
})

describe('the tools that judge packages', () => {
  const modules = fromRegistry('judges', 'publint@0.3.25', '@arethetypeswrong/cli@0.18.5')
  const judge = (...argv: string[]) => {
    const { exitCode, stdout, stderr } = Bun.spawnSync(['node', ...argv], { cwd: made.folder, env: { ...process.env, NO_COLOR: '1' } })
    return { exitCode, says: `${stdout}${stderr}` }
  }
  const tarball = () => made.main

  test.if(given(modules !== undefined, 'publint of the registry'))('publint finds nothing', () => {
    const { exitCode, says } = judge(join(modules ?? '', 'publint/src/cli.js'), join(made.folder, 'braidclaw'), '--strict')
    expect({ exitCode, says }).toEqual({ exitCode: 0, says: expect.stringContaining('All good!') })
  })

  test.if(given(modules !== undefined, 'attw of the registry'))(
    'attw finds the types of every subpath',
    () => {
      const attw = join(modules ?? '', '@arethetypeswrong/cli/dist/index.js')
      const { exitCode, says } = judge(attw, tarball(), '--profile', 'esm-only', '--format', 'table-flipped', '--no-emoji', '--no-color')
      expect({ exitCode, says }).toMatchObject({ exitCode: 0 })
      expect(says.match(/OK \(ESM\)/g)).toHaveLength(entries.length)
    },
    60_000,
  )
})

test('built twice, both packages have the same bytes', async () => {
  const chosen = platforms.filter((platform) => platformName(platform) === here)
  const digests = async (name: string) => (await packAll(join(made.folder, name), { chosen })).map(({ sha256 }) => sha256)
  expect(await digests('a second build')).toEqual(await digests('once more, elsewhere'))
}, 240_000)

test('every file that the exports name is there', () => {
  const named = Object.values(made.manifest.exports).flatMap((to) => (typeof to === 'string' ? [to] : Object.values(to)))
  expect(named.filter((path) => !existsSync(join(made.folder, 'braidclaw', path)))).toEqual([])
  expect(entries.map(fileOf).every((file) => existsSync(join(made.folder, 'braidclaw/dist/types', `${file}.d.ts`)))).toBe(true)
  expect(version).toBe(made.manifest.version)
})
