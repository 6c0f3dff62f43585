/** Implements `service`: the server as a service of the user, by systemd, launchd, or in the background where neither runs. */

import { existsSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { http } from '../../../channels/http/kind.ts'
import type { httpRows } from '../../../channels/http/settings.ts'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { onInterrupt } from '../../../channels/terminal/signals.ts'
import { channelSettings } from '../../../config/config.ts'
import { readKeys } from '../../../config/keys-file.ts'
import { keepKey } from '../../../config/text/write-files.ts'
import { askGateway } from '../../../host/access/gateway-probe.ts'
import { FailureError } from '../../../host/failure.ts'
import { keysIn, loadSetup } from '../../../host/setup/setup.ts'
import { localUrl } from '../../../http/listen.ts'
import { errorText } from '../../../kit/errors.ts'
import { textIn } from '../../../kit/proc.ts'
import type { Values } from '../../../kit/settings.ts'
import { takeLock } from '../../../memory/agent-files/folder-lock.ts'
import { isAlive, ownerOf } from '../../../memory/journal/process-owner.ts'
import { ownProgram } from '../../../service/own-program.ts'
import { chooseManager, managerKinds } from '../../../service/unit/choose-manager.ts'
import type { ServiceManager, ServiceRun, ServiceState } from '../../../service/unit/service-run.ts'
import { type Command, command, type Flags } from '../../args/command.ts'
import { jsonFlag } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitCodes } from '../../exit.ts'
import { printOne } from '../../print-list.ts'

const managerFlag = {
  manager: { type: 'choice', values: managerKinds, about: 'Which service manager (default: the one that answers here)' },
} as const satisfies Flags

export const install = command({
  flags: {
    port: { type: 'whole', min: 1, max: 65_535, about: 'The port of the server (default: channels.http.port)' },
    host: { type: 'text', about: 'The address of the server (default: channels.http.host)' },
    keepKeys: { type: 'boolean', about: 'Keep the keys that only this shell has in keys.env, so that the service has them too' },
    print: { type: 'boolean', about: 'Print the file for the service manager, and install nothing' },
    ...managerFlag,
  },
  examples: [
    ['', 'install it; "service start" starts it now'],
    ['--print --manager systemd', 'look at the unit first'],
    ['--port 4200', 'on another port'],
  ],
  async run(context, { port, host, keepKeys = false, print = false, manager: wanted }) {
    // A configuration with an error would make a service that never starts.
    const setup = loadSetup(context)
    const manager = await managerOf(context, wanted)
    const run = serviceRun(setup, [
      ...(port === undefined ? [] : ['--port', String(port)]),
      ...(host === undefined ? [] : ['--host', host]),
      ...(manager.kind === 'systemd' ? [] : ['--log-file', join(setup.paths.logs, 'service.log')]),
    ])
    if (print) return void context.process.stdout.write(manager.text(run))
    if (manager.kind !== 'background' && existsSync(manager.file) && manager.argv() === undefined)
      throw commandError(`${manager.file} is there already, and was not written by "service install"; move it away first`)
    await working(() => manager.install(run))
    context.process.stdout.write(`installed: ${manager.file}\n`)
    tellOfKeys(setup, keepKeys)
    context.process.stderr.write(`${afterwards(manager)}\n`)
  },
})

export const start = simple('Start it now; it says where it answers, or why it ended', async (context, manager) => {
  assertInstalled(manager)
  const { running, pid } = await manager.state()
  if (running) throw new Error(`it runs already${pid === undefined ? '' : ` (pid ${pid})`}; "service restart" starts it again`)
  return `started (${manager.kind})${await startService(context, manager)}`
})
export const stop = simple('Stop it; running turns get five seconds', async (_, manager) => {
  await manager.stop()
  return `stopped (${manager.kind})`
})
export const uninstall = simple('Stop it and remove its file; the home stays', async (_, manager) => {
  await manager.uninstall()
  return `uninstalled (${manager.kind})`
})
export const restart = simple('Stop it and start it again, for example after an update', async (context, manager) => {
  assertInstalled(manager)
  if ((await manager.state()).running) await manager.stop()
  return `restarted (${manager.kind})${await startService(context, manager)}`
})

export const status = command({
  flags: { ...managerFlag, ...jsonFlag },
  examples: [
    ['', 'exit code 0 when it runs, 1 when not'],
    ['--json', 'for scripts'],
  ],
  async run(context, { manager: wanted, json = false }) {
    const manager = await managerOf(context, wanted)
    const state = await working(() => manager.state())
    const shown = { manager: manager.kind, file: manager.file, ...state }
    printOne(context, { json, value: shown, text: `${described(manager, state)}\n` })
    if (!state.running) throw new CliExit(exitCodes.error)
  },
})

export const logs = command({
  flags: {
    lines: { type: 'whole', short: 'n', min: 1, max: 100_000, default: 50, about: 'How many of the last lines' },
    follow: { type: 'boolean', short: 'f', about: 'Keep printing new lines, until Ctrl-C' },
    ...managerFlag,
  },
  examples: [
    ['', 'the last 50 lines'],
    ['-f -n 200', 'the last 200 lines, and what follows'],
  ],
  async run(context, { lines, follow = false, manager: wanted }) {
    const manager = await managerOf(context, wanted)
    const log = manager.log({ lines, follow })
    if ('path' in log) tellOfCrash(context, `${log.path}.crash`)
    const argv = 'argv' in log ? log.argv : ['tail', '-n', String(lines), ...(follow ? ['-F'] : []), existingLog(log.path)]
    const child = Bun.spawn([...argv], { env: { ...context.env }, stdin: 'ignore', stdout: 'pipe', stderr: 'ignore' })
    using _interrupt = onInterrupt(() => child.kill())
    const decoder = new TextDecoder()
    for await (const piece of child.stdout) {
      context.process.stdout.write(decoder.decode(piece, { stream: true }))
      if (context.outputClosed()) break
    }
    child.kill()
    await child.exited
  },
})

/** Names the file with what it printed instead of logging, because it ended too early or by a bug. */
function tellOfCrash({ process: { stderr } }: CliContext, path: string): void {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0) stderr.write(`note: it also printed something when it ended: ${path}\n`)
}

function simple(does: string, act: (context: CliContext, manager: ServiceManager) => Promise<string>): Command<typeof managerFlag> {
  return {
    flags: managerFlag,
    examples: [['', does]],
    async run(context, { manager: wanted }) {
      const manager = await managerOf(context, wanted)
      context.process.stdout.write(`${await working(() => act(context, manager))}\n`)
    },
  }
}

function assertInstalled({ file }: ServiceManager): void {
  if (!existsSync(file)) throw new Error('the service is not installed; run "braidclaw service install"')
}

async function working<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    if (error instanceof FailureError) throw error
    throw commandError(errorText(error))
  }
}

function existingLog(path: string): string {
  if (existsSync(path)) return path
  throw commandError(`the log ${path} does not exist yet; start the service first`)
}

function described({ kind, file }: ServiceManager, { installed, running, pid, since, restarts, problem }: ServiceState): string {
  const first = running ? `running${pid === undefined ? '' : ` (pid ${pid})`}` : installed ? 'not running' : 'not installed'
  const facts = [
    `by ${kind}: ${file}`,
    ...(since === undefined ? [] : [`since ${new Date(since).toISOString()}`]),
    ...(restarts ? [`started again ${restarts} times`] : []),
    ...(problem === undefined ? [] : [problem]),
  ]
  return [first, ...facts.map((fact) => `  ${fact}`)].join('\n')
}

function afterwards({ kind }: ServiceManager): string {
  if (kind === 'systemd') return 'start it: braidclaw service start. To keep it without a login: loginctl enable-linger'
  if (kind === 'launchd') return 'start it: braidclaw service start. It also starts at each login'
  return 'no service manager answers here, so it runs in the background: braidclaw service start. After a reboot it does not start by itself'
}

/** A key of the configuration that only this shell has would be missing in the service. */
function tellOfKeys({ config, context, paths }: CliSetup, keep: boolean): void {
  const { stderr } = context.process
  const { keys } = readKeys(paths.keys)
  const missing = keysIn(config, context).filter(([name]) => !(name in keys))
  if (missing.length === 0) return
  const names = missing.map(([name]) => name).join(', ')
  if (!keep) return void stderr.write(`note: only this shell has ${names}; with --keep-keys the service gets what it needs\n`)
  for (const [name, value] of missing) keepKey(paths.keys, name, value)
  stderr.write(`kept in ${paths.keys}, which only you can read: ${names}\n`)
}

/** How long a server may take until it answers. */
const patienceMs = 10_000
const lookMs = 50

/** @returns where it answers, to be said after "started". @throws Error that says why it ended, or that the address is taken */
async function startService(context: CliContext, manager: ServiceManager): Promise<string> {
  const settings = gatewaySettings(loadSetup(context), manager.argv())
  // With port 0 it takes any free one.
  const url = settings.port === 0 ? undefined : localUrl(settings)
  if (url !== undefined) await assertFree(url)
  await manager.start()
  if (url === undefined) return '; "service logs" says on which port'
  for (const deadline = Date.now() + patienceMs; Date.now() < deadline; await Bun.sleep(lookMs)) {
    if ((await askGateway(url)).kind === 'ours') return `: ${url}`
    const { running, restarts = 0 } = await manager.state()
    if (!running) throw new Error(`it ended right after its start${lastWordsIn(manager)}; see "service logs"`)
    if (restarts > 0) throw new Error(`it ends right after each start${lastWordsIn(manager)}; it is tried again until "service stop"`)
  }
  throw new Error(`it runs, but nothing answers at ${url} after ${patienceMs / 1_000} s; see "service logs"`)
}

async function assertFree(url: string): Promise<void> {
  const { kind } = await askGateway(url)
  if (kind === 'nothing') return
  const who = kind === 'ours' ? 'another server of ours' : 'another program'
  throw new Error(`${who} listens at ${url} already; stop it, or choose another port: braidclaw service install --port PORT`)
}

/** The last line of its log that tells of an error. */
function lastWordsIn(manager: ServiceManager): string {
  const log = manager.log({ lines: 1, follow: false })
  if (!('path' in log)) return ''
  const lines = textIn(log.path).split('\n')
  const said = lines.findLast((line) => line.includes('error: '))
  return said === undefined ? '' : `: ${said.slice(said.indexOf('error: ') + 'error: '.length)}`
}

export function managerOf({ env, home }: CliContext, wanted?: ServiceManager['kind']): Promise<ServiceManager> {
  const processes = { ownerOf, isAlive, takeLock, sleep: Bun.sleep }
  return chooseManager({ env, home, userHome: env.HOME || homedir(), processes, now: Date.now }, wanted)
}

/** The service gets the places of this shell and nothing else; keys come from keys.env. */
function serviceRun({ context, paths }: CliSetup, flags: readonly string[]): ServiceRun {
  const { env, home } = context
  const names = ['HOME', 'PATH', 'LANG', 'TZ', 'BRAIDCLAW_HOME', 'XDG_CONFIG_HOME', 'XDG_RUNTIME_DIR', 'SSH_AUTH_SOCK'] as const
  return {
    argv: [ownProgram(), 'serve', ...flags],
    env: Object.fromEntries(names.flatMap((name): [string, string][] => (env[name] ? [[name, env[name]]] : []))),
    folder: home,
    logPath: join(paths.logs, 'service.log'),
  }
}

/** Returns the settings of the server that this command line starts: its flags come before the configuration. */
export function gatewaySettings({ config }: CliSetup, argv: readonly string[] = []): Values<typeof httpRows> {
  const settings = channelSettings(config, http)
  const given = (flag: string) => argv[argv.indexOf(flag) + 1 || argv.length]
  return { ...settings, host: given('--host') ?? settings.host, port: Number(given('--port') ?? settings.port) }
}
