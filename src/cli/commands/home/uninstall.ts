/** Implements `update` and `uninstall`: both say which command does it; `uninstall --purge` also removes the home. */

import { existsSync, readlinkSync, realpathSync, rmSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { version } from '../../../../package.json'
import { terminalPrompt } from '../../../channels/terminal/audience.ts'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { homePaths, isTooBroad } from '../../../config/paths.ts'
import { attempt } from '../../../kit/errors.ts'
import { namesIn } from '../../../kit/proc.ts'
import { quoteText } from '../../../security/command/syntax/quote.ts'
import { ownProgram } from '../../../service/own-program.ts'
import { managerKinds } from '../../../service/unit/choose-manager.ts'
import { command } from '../../args/command.ts'
import { CliExit, commandError, exitCodes } from '../../exit.ts'
import { managerOf } from '../service/service.ts'

export const update = command({
  examples: [['', 'it changes nothing itself']],
  async run(context) {
    const { place, update } = installationOf(realpathSync(ownProgram()))
    const restart = (await services(context)).length > 0 ? 'then: braidclaw service restart\n' : ''
    context.process.stdout.write(`braidclaw ${version}: ${place}\nto update it: ${update}\n${restart}`)
  },
})

export const uninstall = command({
  flags: {
    purge: { type: 'boolean', about: 'Remove the home too: conversations, receipts, settings, keys; asks first' },
    yes: { type: 'boolean', short: 'y', about: 'Remove it without asking' },
  },
  examples: [
    ['', 'list what there is, and the command that removes the program'],
    ['--purge --yes', 'remove the home; this cannot be undone'],
  ],
  details: () => `It removes nothing outside of the home, and not the program itself: it names the command for that. With --purge it refuses
while a process uses the home or a service is installed. "braidclaw home backup" makes a copy first.`,
  exits: [4],
  async run(context, { purge = false, yes = false }) {
    const { stdout } = context.process
    const { place, remove } = installationOf(realpathSync(ownProgram()))
    const home = attempt(() => realpathSync(context.home)) ?? context.home
    const entries = namesIn(home).sort()
    const lines = entries.length === 0 ? ['  there is none'] : entries.map((name) => `  ${name}`)
    const first = (await obstaclesTo(context, home)).map((text) => `not yet: ${text}`)
    stdout.write([`home: ${home}`, ...lines, `program: ${place}; to remove it: ${remove}`, ...first, ''].join('\n'))
    if (entries.length === 0) return
    if (!purge) return void stdout.write('to remove the home too: braidclaw uninstall --purge\n')
    const question = `Remove ${home} with everything in it for good? [y/N] `
    const isAsked = first.length === 0 && !yes
    if (isAsked && !/^\s*y(es)?\s*$/i.test((await terminalPrompt(context)?.(question)) ?? ''))
      throw new CliExit(exitCodes.approval_needed, 'error: nothing was removed; --yes removes it without asking')
    // A process may have started while the question stood there.
    const obstacles = await obstaclesTo(context, home)
    if (obstacles.length > 0) throw commandError(`nothing was removed: ${obstacles.join('; ')}`)
    // A home that is a link goes with the folder that it names; what links inside lead to stays.
    rmSync(home, { recursive: true })
    rmSync(context.home, { force: true })
    const { XDG_STATE_HOME, XDG_CACHE_HOME, HOME = homedir() } = context.env
    const copies = [XDG_STATE_HOME || join(HOME, '.local/state'), XDG_CACHE_HOME || join(HOME, '.cache')].map((at) => join(at, 'braidclaw'))
    const left = copies.filter((folder) => existsSync(folder)).map((folder) => `; copies of workspaces are left in ${folder}`)
    stdout.write(`removed ${home}${left.join('')}; now remove the program: ${remove}\n`)
  },
})

/** Finds units and notes of service managers that run us, whether or not the manager answers. */
async function services(context: CliContext) {
  const managers = await Promise.all(managerKinds.map((kind) => managerOf(context, kind)))
  return managers.filter(({ file, argv }) => existsSync(file) && argv() !== undefined)
}

async function obstaclesTo(context: CliContext, home: string): Promise<readonly string[]> {
  const { config, memory, receipts } = homePaths(home)
  const isBroad = isTooBroad({ cwd: home, home: join(home, 'run'), userHome: context.env.HOME || homedir() })
  const isOurs = !existsSync(home) || [config, memory, receipts].some((each) => existsSync(each))
  const manually = `rm -r ${quoteText(home)}`
  const installed = await services(context)
  return [
    ...installed.map(({ kind, file }) => `a service is installed (${file}); first: braidclaw service uninstall --manager ${kind}`),
    ...usersOf(home).map((pid) => `process ${pid} uses the home; end it first (kill ${pid})`),
    ...(existsSync('/proc/self/fd') ? [] : [`this system does not show which processes use the home; end them, then: ${manually}`]),
    ...(isOurs && !isBroad ? [] : [`${home} does not look like a home of ours alone; look at it, and remove it yourself: ${manually}`]),
  ]
}

/** Finds the other processes that have a file of the home open. */
function usersOf(home: string): readonly string[] {
  const opened = (path: string) => attempt(() => readlinkSync(path)) ?? ''
  const pids = namesIn('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
  return pids.filter((pid) => namesIn(`/proc/${pid}/fd`).some((fd) => `${opened(`/proc/${pid}/fd/${fd}`)}/`.startsWith(`${home}/`)))
}

type Installation = {
  /** The folder of the installation; for an executable, the file. */
  readonly place: string
  readonly update: string
  readonly remove: string
}

/** Lists the folders where package managers keep what is not part of a project. */
const globals = [
  { folder: /\/global\/[^/]+\/\.pnpm\//, add: 'pnpm add -g', remove: 'pnpm remove -g' },
  { folder: /\/yarn\/global$/, add: 'yarn global add', remove: 'yarn global remove' },
  { folder: /\/\.bun\/install\/global$/, add: 'bun add -g', remove: 'bun remove -g' },
] as const

/** These commands leave a development dependency where it is. */
const projects = [
  { lock: 'pnpm-lock.yaml', update: 'pnpm update --latest braidclaw', remove: 'pnpm remove braidclaw' },
  { lock: 'yarn.lock', update: 'yarn upgrade --latest braidclaw', remove: 'yarn remove braidclaw' },
  { lock: 'bun.lock', update: 'bun update --latest braidclaw', remove: 'bun remove braidclaw' },
  { lock: '', update: 'npm install braidclaw@latest', remove: 'npm uninstall braidclaw' },
] as const

/**
 * Tells which commands update and remove this program, as it was installed.
 * @param program the absolute path, without links, of the executable or of bin/braidclaw
 */
export function installationOf(program: string): Installation {
  if (!program.includes('/node_modules/')) return ofSources(program)
  const place = program.slice(0, program.indexOf('/node_modules/'))
  const path = quoteText(place)
  if (/\/_npx\/[^/]+$/.test(place)) return { place, update: 'npx braidclaw@latest', remove: `rm -r ${path}` }
  const global = globals.find(({ folder }) => folder.test(place)) ?? npmPrefix(place)
  if (global) return { place, update: `${global.add} braidclaw@latest`, remove: `${global.remove} braidclaw` }
  const project = projects.find(({ lock }) => existsSync(join(place, lock)))
  return { place, update: `cd ${path} && ${project?.update}`, remove: `cd ${path} && ${project?.remove}` }
}

/** A project in a folder named lib has a package.json; the prefix of npm has none. */
function npmPrefix(place: string) {
  if (!place.endsWith('/lib') || existsSync(join(place, 'package.json'))) return undefined
  const npm = [0, statSync(place).uid].includes(process.getuid?.() ?? 0) ? 'npm' : 'sudo npm'
  const prefix = `-g --prefix ${quoteText(dirname(place))}`
  return { add: `${npm} install ${prefix}`, remove: `${npm} uninstall ${prefix}` }
}

/** A clone runs bin/braidclaw, or the dist/braidclaw that it built. */
function ofSources(program: string): Installation {
  const place = dirname(dirname(program))
  const path = quoteText(place)
  const build = program.endsWith('/dist/braidclaw') ? ' && npm run build' : ''
  if (existsSync(join(place, 'src/main.ts'))) return { place, update: `cd ${path} && git pull && npm ci${build}`, remove: `rm -r ${path}` }
  const remove = `rm ${quoteText(program)}`
  return { place: program, update: `npm install -g braidclaw@latest && ${remove}`, remove }
}
