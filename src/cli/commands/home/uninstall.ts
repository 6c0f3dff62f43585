/** Implements `update` and `uninstall`: both say which command does it; `uninstall --purge` also removes the home. */

import { existsSync, lstatSync, readdirSync, readlinkSync, realpathSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { version } from '../../../../package.json'
import { fifoFolder } from '../../../channels/fifo/daemon-folder.ts'
import { terminalPrompt } from '../../../channels/terminal/audience.ts'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { homePaths, isTooBroad, ownWorkspace } from '../../../config/paths.ts'
import { count } from '../../../kit/text.ts'
import { installationOf, quoted } from '../../../service/installation.ts'
import { ownProgram } from '../../../service/own-program.ts'
import { managerKinds } from '../../../service/unit/choose-manager.ts'
import { command } from '../../args/command.ts'
import { jsonFlag } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitCodes } from '../../exit.ts'
import { managerOf } from '../service/service.ts'

export const update = command({
  flags: jsonFlag,
  examples: [['', 'it changes nothing itself']],
  async run(context, { json = false }) {
    const { kind, place, update } = installed()
    const restart = (await services(context)).length > 0 ? 'braidclaw service restart' : undefined
    const lines = [`braidclaw ${version} (${kind}): ${place}`, `to update it: ${update}`, ...(restart ? [`then: ${restart}`] : [])]
    context.process.stdout.write(json ? `${JSON.stringify({ version, kind, place, update, restart })}\n` : `${lines.join('\n')}\n`)
  },
})

export const uninstall = command({
  flags: {
    purge: { type: 'boolean', about: 'Remove the home too: conversations, receipts, settings, keys; asks first' },
    yes: { type: 'boolean', short: 'y', about: 'Remove it without asking' },
    dryRun: { type: 'boolean', about: 'Only say what --purge would remove, or why it would not' },
    ...jsonFlag,
  },
  examples: [
    ['', 'list what there is, and the command that removes the program'],
    ['--purge --dry-run', 'what would be removed'],
    ['--purge --yes', 'remove the home; this cannot be undone'],
  ],
  details: () => `It removes nothing outside of the home, and not the program itself: it names the command for that. With --purge it refuses
while a process uses the home or a service is installed. "braidclaw home backup" makes a copy first.`,
  exits: [4],
  async run(context, { purge = false, yes = false, dryRun = false, json = false }) {
    const found = await survey(context)
    const { home, program, obstacles } = found
    const { stdout } = context.process
    if (!json) stdout.write(described(found))
    const removes = purge && !dryRun && obstacles.length === 0 && home.files > 0
    if (removes && !yes && !(await confirmed(context, home.path)))
      throw new CliExit(exitCodes.approval_needed, 'error: nothing was removed; --yes removes it without asking')
    // A process may have started while the question stood there.
    const late = removes && !yes ? (await survey(context)).obstacles : obstacles
    const removed = removes && late.length === 0
    if (removed) {
      // A home that is a link goes with the folder that it names; what links inside lead to stays.
      rmSync(home.path, { recursive: true })
      rmSync(context.home, { force: true })
    }
    if (json) stdout.write(`${JSON.stringify({ ...found, removed })}\n`)
    else if (removed) stdout.write(`removed ${home.path}; now remove the program: ${program.remove}\n`)
    if (purge && late.length > 0) throw commandError(`nothing was removed: ${late.join('; ')}`)
  },
})

type Services = readonly { readonly kind: string; readonly file: string }[]
type Survey = Awaited<ReturnType<typeof survey>>

async function survey(context: CliContext) {
  const path = attempt(() => realpathSync(context.home)) ?? context.home
  const home = { path, entries: namesIn(path), ...sizeOf(path) }
  const found = { home, services: await services(context), processes: usersOf(path), elsewhere: elsewhere(context) }
  return { ...found, program: installed(), obstacles: obstaclesTo(context, found) }
}

function installed() {
  return installationOf(realpathSync(ownProgram()))
}

/** Finds units and notes of service managers that run us, whether or not the manager answers. */
async function services(context: CliContext): Promise<Services> {
  const managers = await Promise.all(managerKinds.map((kind) => managerOf(context, kind)))
  return managers.flatMap(({ kind, file, argv }) => (existsSync(file) && argv() !== undefined ? [{ kind, file }] : []))
}

/** Finds the other processes that have a file of the home open; undefined where there is no /proc. */
function usersOf(home: string): readonly { readonly pid: number; readonly name: string }[] | undefined {
  if (!existsSync('/proc/self/fd')) return undefined
  const isInside = (path: string | undefined) => path !== undefined && `${path}/`.startsWith(`${home}/`)
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
  return pids.flatMap((pid) => {
    if (!namesIn(`/proc/${pid}/fd`).some((fd) => isInside(attempt(() => readlinkSync(`/proc/${pid}/fd/${fd}`))))) return []
    return [
      {
        pid: Number(pid),
        name:
          attempt(() => readlinkSync(`/proc/${pid}/exe`))
            ?.split('/')
            .at(-1) ?? '',
      },
    ]
  })
}

/** Lists what we made outside of the home, which stays: the user's own files, and what other homes use too. */
function elsewhere(context: CliContext): readonly string[] {
  const { env } = context
  const user = env.HOME || homedir()
  const places = [join(user, ownWorkspace), join(env.XDG_CACHE_HOME || join(user, '.cache'), 'braidclaw'), fifoFolder(context, undefined)]
  return places.filter((path) => existsSync(path))
}

type Found = {
  readonly home: { readonly path: string; readonly files: number }
  readonly services: Services
  readonly processes: ReturnType<typeof usersOf>
}

function obstaclesTo(context: CliContext, { home: { path, files }, services, processes }: Found): readonly string[] {
  const { config, memory, receipts } = homePaths(path)
  const isBroad = isTooBroad({ cwd: path, home: join(path, 'run'), userHome: context.env.HOME || homedir() })
  const isOurs = files === 0 || [config, memory, receipts].some((each) => existsSync(each))
  const manually = `rm -r ${quoted(path)}`
  return [
    ...services.map(({ kind, file }) => `a service is installed (${file}); first: braidclaw service uninstall --manager ${kind}`),
    ...(processes ?? []).map(({ pid, name }) => `process ${pid} (${name}) uses the home; end it first (kill ${pid})`),
    ...(processes ? [] : [`this system does not show which processes use the home; end them, then: ${manually}`]),
    ...(isOurs && !isBroad ? [] : [`${path} does not look like a home of ours alone; look at it, and remove it yourself: ${manually}`]),
  ]
}

function described({ home, services, processes, elsewhere, program, obstacles }: Survey): string {
  const size = home.files === 0 ? 'there is none' : `${count(home.files, 'file')}, ${Math.ceil(home.bytes / 1024)} KiB`
  const lines = [
    `home:      ${home.path} (${size})`,
    ...home.entries.map((name) => `           ${name}`),
    ...services.map(({ kind, file }) => `service:   ${file} (${kind})`),
    ...(processes ?? []).map(({ pid, name }) => `process:   ${pid} (${name})`),
    ...elsewhere.map((path) => `elsewhere: ${path} (stays)`),
    `program:   ${program.place} (${program.kind}); to remove it: ${program.remove}`,
    ...(home.files === 0 ? [] : ['to remove the home too: braidclaw uninstall --purge']),
    ...obstacles.map((text) => `  not yet: ${text}`),
  ]
  return `${lines.join('\n')}\n`
}

async function confirmed(context: CliContext, path: string): Promise<boolean> {
  const answer = await terminalPrompt(context)?.(`Remove ${path} with everything in it for good? [y/N] `)
  return /^\s*y(es)?\s*$/i.test(answer ?? '')
}

function sizeOf(path: string): { readonly files: number; readonly bytes: number } {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (!stat?.isDirectory()) return { files: stat ? 1 : 0, bytes: stat?.size ?? 0 }
  const sizes = namesIn(path).map((name) => sizeOf(join(path, name)))
  return { files: sizes.reduce((sum, { files }) => sum + files, 0), bytes: sizes.reduce((sum, { bytes }) => sum + bytes, 0) }
}

function namesIn(folder: string): readonly string[] {
  return attempt(() => readdirSync(folder).sort()) ?? []
}

/** Returns undefined when it cannot be read, for example because a process has ended or belongs to somebody else. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
