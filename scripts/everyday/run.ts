/** Really runs the everyday commands with --auto, each in a fresh copy of a made project, and keeps what came of them for the page. */

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { literalArg } from '../../src/security/command/flow/model.ts'
import { hostsOf } from '../../src/security/command/tools/network.ts'
import { everydayCommands } from './commands.ts'
import { installed, makeProject } from './project.ts'

const executable = join(import.meta.dir, '../../bin/braidclaw')
const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

type Ran = { readonly outcome: string; readonly harm: readonly string[]; readonly why?: string }

function run(command: string, place: string, template: string): Ran {
  rmSync(place, { recursive: true, force: true })
  const workspace = join(place, 'ws')
  mkdirSync(place)
  cpSync(template, place, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
  const before = picture(place)
  const auto = call(command, workspace, ['--auto'])
  const harm = auto.status === 4 ? [] : harmed(before, picture(place), place)
  if (auto.status === 0) return { outcome: 'done', harm }
  if (auto.status === 3) return { outcome: 'refused', harm, why: auto.stderr }
  const wholly = call(command, workspace, ['--autonomy', 'full'])
  return { outcome: wholly.status === 0 ? 'asks' : 'fails', harm, why: `${auto.stderr}${wholly.stderr}` }
}

function call(command: string, workspace: string, level: readonly string[]) {
  const args = ['-w', executable, 'tool', 'run', 'shell', '-C', workspace, ...level, '--json', JSON.stringify({ command, timeout: 60 })]
  return spawnSync('/usr/bin/setsid', args, { encoding: 'utf8', env: { HOME: join(workspace, '../home'), PATH: path }, timeout: 90_000 })
}

type Picture = ReadonlyMap<string, string>

/** Every path with its mode and content, our own home aside. */
function picture(folder: string, root = folder, found = new Map<string, string>()): Picture {
  for (const name of readdirSync(folder)) {
    const whole = join(folder, name)
    const key = relative(root, whole)
    if (key === 'home/.braidclaw') continue
    const stat = lstatSync(whole)
    const content = stat.isSymbolicLink()
      ? readlinkSync(whole)
      : stat.isFile()
        ? createHash('sha256').update(readFileSync(whole)).digest('hex')
        : ''
    found.set(key, `${stat.mode & 0o111 && stat.isFile() ? 'x' : ''} ${content}`)
    if (stat.isDirectory()) picture(whole, root, found)
  }
  return found
}

/** What must never change without a question: everything outside, what git and other tools run or obey, and new executables. */
function harmed(before: Picture, after: Picture, place: string): string[] {
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter((key) => before.get(key) !== after.get(key))
  return changed.filter((key) => {
    const isProtected = /(^|\/)(\.git\/(config|hooks)|\.envrc|\.vscode|Makefile|conftest\.py)/.test(key)
    const runs = after.get(key)?.startsWith('x') === true && before.get(key)?.startsWith('x') !== true
    return !key.startsWith('ws/') || isProtected || runs || place === ''
  })
}

function isAbsent(command: string): boolean {
  const [name = '', ...args] = command.replace(/^(?:[A-Z_]+=\S+ |time |timeout \d+ |env \S+=\S+ )/, '').split(/\s+/)
  const isInstalled = name === 'npx' && installed.includes(args[0] ?? '')
  const online =
    !isInstalled &&
    hostsOf(
      name,
      args.map((arg) => literalArg(arg)),
    ).length > 0
  // They ask for the host of the remote, and the made project's remote has none.
  const remote = /^git (fetch|pull|push)/.test(command)
  const isProgram = /^[a-z][\w+-]*$/.test(name) && !/^(for|while|if|cd|test|n)$/.test(name)
  return online || remote || (isProgram && Bun.which(name, { PATH: path }) === null)
}

const base = mkdtempSync(join(tmpdir(), 'everyday-'))
const template = join(base, 'template')
makeProject(join(template, 'ws'), join(template, 'beside'))
mkdirSync(join(template, 'home'))
writeFileSync(join(template, 'home/canary'), 'alive')
const wanted = process.argv.slice(2)
const outcomes: { [command: string]: string } = {}
let harm = 0
for (const command of everydayCommands.filter((one) => wanted.length === 0 || wanted.some((part) => one.includes(part)))) {
  if (isAbsent(command)) continue
  const ran = run(command, join(base, 'place'), template)
  outcomes[command] = ran.outcome
  harm += ran.harm.length
  if (ran.outcome !== 'done' || ran.harm.length > 0)
    process.stdout.write(
      `${ran.outcome} ${JSON.stringify(command)} ${ran.harm.join(' ')} ${(ran.why ?? '').replaceAll('\n', ' ').slice(0, 240)}\n`,
    )
}
if (wanted.length === 0) writeFileSync(join(import.meta.dir, 'worked.json'), `${JSON.stringify({ harm, outcomes }, null, 2)}\n`)
process.stdout.write(
  `${Object.values(outcomes).filter((one) => one === 'done').length} of ${Object.keys(outcomes).length} done, harm ${harm}\n`,
)
rmSync(base, { recursive: true, force: true })
