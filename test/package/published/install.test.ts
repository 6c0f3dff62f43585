/** What is published, installed from its tarballs on a machine with Node and npm alone: it runs, and says what to type when it cannot. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { entries, fileOf } from '../../../scripts/packages/entries.ts'
import { needs } from '../../support/needs.ts'
import {
  here,
  installGlobally,
  installInProject,
  type Machine,
  machine,
  type Packages,
  packages,
  programBeside,
  version,
} from './packages.ts'

const root = join(import.meta.dir, '../../..')
const section =
  readFileSync(join(root, 'docs/library.md'), 'utf8')
    .split('\n## ')
    .find((text) => text.startsWith('Install')) ?? ''
const documented = [...section.matchAll(/^\$ (.+)$/gm)].map(([, line = '']) => line)
let made: Packages
let at: Machine
let launcher: string
beforeAll(async () => {
  made = await packages()
  at = machine(made.folder)
  writeFileSync(join(at.env.HOME ?? '', 'note.txt'), 'hello')
  launcher = installGlobally(
    at,
    made.tarballs,
    documented.find((line) => line.startsWith('npm install -g')),
  )
}, 120_000)
afterAll(() => made[Symbol.dispose]())

describe('what is published', () => {
  test('is at most 60 files besides the documentation, and nothing that runs when it is installed', () => {
    const listed = Bun.spawnSync(['tar', 'tzf', made.main]).stdout.toString().trim().split('\n')
    const besides = listed.filter((path) => !/^package\/(docs|examples)\/|\.md$/.test(path))
    expect(besides).toContain('package/bin/braidclaw')
    expect(besides.length).toBeLessThanOrEqual(60)
    const { private: isPrivate, scripts, devDependencies, engines, dependencies, optionalDependencies } = made.manifest
    expect([isPrivate, scripts, devDependencies]).toEqual([undefined, undefined, undefined])
    expect(engines).toEqual({ node: '>=20' })
    expect(Object.keys(dependencies).filter((name) => name !== 'zod')).toEqual([])
    expect(optionalDependencies).toEqual({ '@braidclaw/linux-x64': version, '@braidclaw/linux-arm64': version })
  })

  test('exports what the list of entries says, as the development package does', () => {
    const subpaths = entries.map(({ subpath }) => subpath)
    expect(Object.keys(made.manifest.exports)).toEqual([...subpaths, './package.json'])
    const { exports: own } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    expect(own).toEqual({
      ...Object.fromEntries(entries.map(({ subpath, source }) => [subpath, `./${source}`])),
      './package.json': './package.json',
    })
  })
})

describe('installed globally', () => {
  test('there is no bun, and the offline helper answers', () => {
    expect(at.run(['sh', '-c', 'command -v bun']).code).not.toBe(0)
    const asked = at.run([launcher, 'agent', '-C', '.', '-m', 'What files are here?'])
    expect([asked.code, asked.stdout]).toEqual([0, expect.stringContaining('note.txt (5 bytes)')])
    expect(at.run([launcher, '--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
  })

  test('stdin, exit codes and signals are those of the program', async () => {
    const filtered = at.run([launcher], { stdin: 'hello\n' })
    expect([filtered.code, filtered.stdout]).toEqual([0, expect.stringContaining('Hello')])
    expect(at.run([launcher, 'agent', '--no-such-flag']).code).toBe(2)
    const child = Bun.spawn([launcher, 'agent'], { cwd: at.env.HOME, env: at.env, stdin: 'pipe', stdout: 'pipe', stderr: 'ignore' })
    // The launcher has become the program: one process, which a signal to the launcher reaches.
    const program = programBeside(launcher)
    while (readlink(`/proc/${child.pid}/exe`) !== program) await Bun.sleep(1)
    child.kill('SIGKILL')
    await child.exited
    expect(child.signalCode).toBe('SIGKILL')
  })

  test('it writes nothing into its own folder, so that it also runs from one that is read-only', () => {
    const installed = dirname(dirname(dirname(programBeside(launcher))))
    const state = () => Bun.spawnSync(['find', installed, '-printf', '%p %s %T@\n']).stdout.toString()
    const before = state()
    Bun.spawnSync(['chmod', '-R', 'a-w', installed])
    expect(at.run([launcher, 'agent', '-m', 'What time is it?']).code).toBe(0)
    Bun.spawnSync(['chmod', '-R', 'u+w', installed])
    expect(state()).toBe(before)
  })

  test('update names the command for this kind of installation', () => {
    const { stdout } = at.run([launcher, 'update'])
    const prefix = dirname(dirname(launcher))
    const update = `npm install -g --prefix ${prefix} braidclaw@latest`
    expect(stdout).toMatch(new RegExp(`^braidclaw ${version}: .*\nto update it: ${update}\n$`))
  })

  test('the launcher costs at most 25 ms over the program itself', () => {
    // The quickest of many runs is the one that nothing else on the machine delayed.
    const quickest = (argv: readonly string[]) => {
      const times = Array.from({ length: 25 }, () => {
        const start = performance.now()
        at.run([...argv, '--version'])
        return performance.now() - start
      })
      return Math.min(...times)
    }
    const [through, alone] = [quickest([launcher]), quickest([programBeside(launcher)])]
    console.log(`launcher ${through.toFixed(1)} ms, program alone ${alone.toFixed(1)} ms`)
    expect(through - alone).toBeLessThan(25)
  })
})

test('docs/library.md: the commands and the program that stand there run', () => {
  expect(documented[0]).toBe('npm run -s build -- --packages out')
  const commands = documented.filter((line) => line.startsWith('braidclaw '))
  expect(commands).toHaveLength(3)
  for (const line of commands) expect(at.run(['sh', '-c', `PATH=${dirname(launcher)}:$PATH; ${line}`])).toMatchObject({ code: 0 })
  const [, program = ''] = /```ts\n(.*?)```/s.exec(section) ?? []
  const project = mkdtempSync(join(at.dir, 'documented-'))
  cpSync(join(made.folder, 'braidclaw'), join(project, 'node_modules/braidclaw'), { recursive: true })
  writeFileSync(join(project, 'program.mjs'), program)
  writeFileSync(join(project, 'library.yaml'), 'version: 1\nskills:\n  - name: vacuum\n    summary: Frees space\n    roles: [sysadmin]\n')
  const { code, stdout, stderr } = at.run(['node', 'program.mjs'], { cwd: project })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain('- vacuum: Frees space')
})

describe('the library, installed', () => {
  const inBun = [process.execPath, '--config=/dev/null', '--no-install']
  const [onNode, everywhere] = [entries.filter(({ node }) => node !== 'none'), entries]

  test.each([
    { where: 'in Bun', runtime: inBun, listed: everywhere },
    { where: 'on Node', runtime: ['node'], listed: onNode },
  ])('$where each subpath has exactly the values that its types declare', ({ runtime, listed }) => {
    for (const entry of listed) {
      const types = readFileSync(join(made.folder, 'braidclaw/dist/types', `${fileOf(entry)}.d.ts`), 'utf8')
      const [, list = ''] = /^export \{ (.*) \} from/.exec(types) ?? []
      const declared = list.split(', ').filter((name) => !name.startsWith('type '))
      const text = `console.log(Object.keys(await import('braidclaw${entry.subpath.slice(1)}')).join())`
      const script = join(installedAt(), 'names.mjs')
      writeFileSync(script, text)
      expect({ entry, stdout: at.run([...runtime, script]).stdout }).toEqual({ entry, stdout: `${declared.sort().join()}\n` })
    }
  })

  const program = `import { composeSystem, llmCall, session, tools } from 'braidclaw/unix'
const home = process.env.HOME
const around = { home: home + '/.library', workspace: home, env: { HOME: home, PATH: process.env.PATH } }
const kept = (answer) => ({ ...answer, runId: typeof answer.runId, conversationId: typeof answer.conversationId })
const pieces = []
session.append('session.jsonl', 'user', 'Hello')
const seen = [
  kept(await llmCall('hello', { ...around, onText: (piece) => pieces.push(piece) })),
  pieces.join('') !== '',
  kept(await llmCall(' ', around)),
  kept(await llmCall('hello', { ...around, model: 'nobody/nothing' })),
  (await llmCall('hello', { ...around, signal: AbortSignal.abort() })).code,
  (await tools.list(around)).map(({ name, risk, parameters }) => [name, risk, parameters.type]),
  await tools.run('file_read', { path: 'note.txt' }, around),
  { ...(await tools.run('file_write', { path: 'x.txt', content: 'x' }, around)), message: '' },
  await tools.list({ ...around, tools: '/nowhere' }).catch((error) => error instanceof Error),
  session.count('session.jsonl'),
  await composeSystem('.'),
]
console.log(JSON.stringify(seen, undefined, 1))
`
  /** @returns a project that has both packages */
  function installedAt(): string {
    const project = mkdtempSync(join(at.dir, 'library-'))
    const modules = join(project, 'node_modules')
    mkdirSync(join(modules, '@braidclaw'), { recursive: true })
    cpSync(join(made.folder, 'braidclaw'), join(modules, 'braidclaw'), { recursive: true })
    symlinkSync(join(made.folder, here), join(modules, '@braidclaw', here))
    return project
  }
  const answersOf = (runtime: readonly string[]) => {
    const project = installedAt()
    writeFileSync(join(project, 'program.mjs'), program)
    writeFileSync(join(project, 'soul.md'), 'You are brief.')
    writeFileSync(join(project, 'summary.md'), 'A summary.')
    writeFileSync(join(project, 'pins.jsonl'), '{"text":"A pin."}\n')
    const { code, stdout, stderr } = at.run([...runtime, 'program.mjs'], { cwd: project })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return JSON.parse(stdout)
  }

  test('braidclaw/unix gives the same answers in Bun, in process, and on Node, by the program', () => {
    const answers = answersOf(inBun)
    expect(answers[0]).toEqual({ ok: true, text: expect.stringContaining('Hello'), runId: 'string', conversationId: 'string' })
    expect(answers[4]).toBe('cancelled')
    expect(answers[6]).toEqual({ ok: true, output: 'hello' })
    expect(answers[7]).toMatchObject({ ok: false })
    expect(answers[10]).toMatch(/You are brief\..*A summary\..*A pin\./s)
    expect(answersOf(['node'])).toEqual(answers)
  })

  test.if(needs('bwrap'))('in Bun, too, a project may have its configuration as a program', () => {
    const project = installedAt()
    const files = {
      'braidclaw.config.ts': "export default { sandbox: { security: { denyRead: ['secret.txt'] } } }",
      'secret.txt': 'a secret',
      'program.mjs': `import { tools } from 'braidclaw/unix'
const around = { home: process.cwd() + '/home', workspace: process.cwd(), env: { HOME: process.env.HOME, PATH: process.env.PATH } }
console.log(JSON.stringify(await tools.run('file_read', { path: 'secret.txt' }, around)))
`,
    }
    mkdirSync(join(project, 'home'))
    writeFileSync(join(project, 'home/trusted_folders'), `${project}\n`, { mode: 0o600 })
    for (const [name, text] of Object.entries(files)) writeFileSync(join(project, name), text)
    const { stdout, stderr } = at.run([...inBun, 'program.mjs'], { cwd: project })
    expect({ answer: JSON.parse(stdout), stderr }).toMatchObject({ answer: { code: 'denied' }, stderr: '' })
  })
})

function readlink(path: string): string {
  return Bun.spawnSync(['readlink', path]).stdout.toString().trim()
}

describe('the launcher finds the program', () => {
  const program = () => join(made.folder, here)
  /** Puts the packages where a package manager would. @returns what runs */
  function lay(main: string, platform: string, linked?: string): string {
    const project = join(at.dir, `layout-${Math.random().toString(36).slice(2)}`)
    cpSync(join(made.folder, 'braidclaw'), join(project, main), { recursive: true })
    mkdirSync(join(project, dirname(platform)), { recursive: true })
    symlinkSync(program(), join(project, platform))
    if (linked) symlinkSync(join(project, main), join(project, linked))
    return join(project, linked ?? main, 'bin/braidclaw')
  }
  const pnpm = 'node_modules/.pnpm/braidclaw@1/node_modules'
  test.each([
    { where: 'beside its package', main: 'node_modules/braidclaw', modules: 'node_modules' },
    { where: 'below it', main: 'lib/node_modules/braidclaw', modules: 'lib/node_modules/braidclaw/node_modules' },
    { where: 'in a folder around it', main: 'node_modules/other/node_modules/braidclaw', modules: 'node_modules' },
    { where: 'in the cache of npx', main: '.npm/_npx/1f/node_modules/braidclaw', modules: '.npm/_npx/1f/node_modules' },
    { where: 'in the store of pnpm', main: `${pnpm}/braidclaw`, modules: pnpm, linked: 'node_modules/braidclaw' },
    { where: 'beside the global store of pnpm', main: 'global/5/.pnpm/b@1/node_modules/braidclaw', modules: 'global/5/node_modules' },
  ])('$where', ({ main, modules, linked }) => {
    expect(at.run([lay(main, `${modules}/@braidclaw/${here}`, linked), '--version'])).toEqual({
      code: 0,
      stdout: `${version}\n`,
      stderr: '',
    })
  })
})

describe('when it cannot run, the launcher says why and what to type', () => {
  const refusal = (launcher: string) => {
    const { code, stdout, stderr } = at.run([launcher, '--version'])
    expect([code, stdout]).toEqual([1, ''])
    return stderr
  }

  test('the platform package may not be executed, is for another platform, or is missing, or the folder was moved', () => {
    const project = installInProject(at, made.tarballs)
    const [launcher, platforms] = [join(project, 'node_modules/.bin/braidclaw'), join(project, 'node_modules/@braidclaw')]
    expect(at.run([launcher, '--version']).code).toBe(0)
    chmodSync(join(platforms, here, 'bin/braidclaw'), 0o644)
    expect(refusal(launcher)).toContain(`may not be executed; allow it with: chmod +x "${join(platforms, here)}/bin/braidclaw"`)
    renameSync(join(platforms, here), join(platforms, 'linux-riscv'))
    const again = `install it again with: cd "${project}" && npm install --include=optional braidclaw`
    const other = `this machine is ${here}, but what is installed is for another one (${platforms}/linux-riscv)`
    expect(refusal(launcher)).toBe(`braidclaw: ${other}; ${again}\n`)
    rmSync(platforms, { recursive: true })
    const missing = `the package @braidclaw/${here}, which has the program, is not installed (optional dependencies were left out)`
    expect(refusal(launcher)).toBe(`braidclaw: ${missing}; ${again.replace('install it again', 'install it')}\n`)
    const moved = join(at.dir, 'moved')
    renameSync(join(project, 'node_modules/braidclaw'), moved)
    expect(refusal(join(moved, 'bin/braidclaw'))).toBe(
      `braidclaw: ${moved} was moved out of the folder it was installed in, and the package @braidclaw/${here} with the program is not beside it; install it again with: npm install -g braidclaw\n`,
    )
  })

  test('nothing is published for this machine', () => {
    const programs = join(at.dir, 'another-machine')
    mkdirSync(programs)
    writeFileSync(join(programs, 'uname'), '#!/bin/sh\necho "SunOS sparc"\n', { mode: 0o755 })
    const env = { ...at.env, PATH: `${programs}:${at.env.PATH}` }
    const { exitCode, stderr } = Bun.spawnSync([launcher, '--version'], { env })
    expect([exitCode, stderr.toString()]).toEqual([1, expect.stringContaining('no program is published for SunOS sparc, only for Linux')])
  })
})
