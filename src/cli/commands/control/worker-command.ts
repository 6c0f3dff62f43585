/** Implements `control worker`, and what `agent --control` starts: an agent of this machine works for a control plane. */

import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { version } from '../../../../package.json'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { PlaneRefusal } from '../../../control/contract/plane-refusal.ts'
import { runnerNames } from '../../../control/runners/runner.ts'
import { openOwnWorker } from '../../../control/worker/open-own-worker.ts'
import type { WorkerEnd } from '../../../control/worker/worker-options.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { atAsyncEnd } from '../../../kit/errors.ts'
import { quote, visible } from '../../../kit/text.ts'
import { createProviderFetch } from '../../../workspace/net/provider-fetch.ts'
import { type Arguments, command, type Flags, type Given } from '../../args/command.ts'
import { approveFlag, autonomyFlag, envFileFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitCodes, usageError } from '../../exit.ts'
import { withServerFiles } from '../../server-files.ts'
import { nameOf } from './connect/argument-values.ts'
import { urlFlag } from './connect/control-flags.ts'
import { controlAddress, exitOf, secretIn } from './connect/with-control.ts'

const flags = {
  agent: {
    type: 'text',
    about: 'Which agent of the control plane this is (default: CONTROLPLANE_AGENT_ID, else the one whose key it has)',
  },
  role: {
    type: 'text',
    short: 'r',
    about: 'Whose tasks it claims: the role that the agent has at the control plane, which is the default',
  },
  runner: {
    type: 'choice',
    values: runnerNames,
    about: 'What does the work (default: CONTROLPLANE_RUNNER, else pi where it is installed, else own)',
  },
  keyFile: { type: 'text', about: 'A file with the key of the agent (default: CONTROLPLANE_API_KEY)' },
  model: { type: 'text', about: 'Which model the runner asks' },
  label: { type: 'text', many: true, about: 'Claim only tasks with this label; may be repeated' },
  lease: {
    type: 'whole',
    min: 1,
    max: 86_400,
    unit: 'seconds',
    about: 'How long a lease lasts without a beat; at most what the control plane allows',
  },
  network: {
    type: 'choice',
    values: ['control', 'host'],
    about: 'Where children may connect to: the control plane only (default, where that is possible), or anywhere',
  },
  readable: { type: 'text', many: true, about: 'A folder or file that children may read besides; may be repeated' },
  once: { type: 'boolean', about: 'Do one task and end' },
  logFile: { type: 'text', about: 'Write all messages to this file instead of stderr; a full file (5 MB) becomes NAME.1' },
  ...envFileFlag,
  ...workspaceFlag,
  ...autonomyFlag,
  ...approveFlag,
  ...urlFlag,
} as const satisfies Flags
const args = {
  command: { type: 'text', many: true, optional: true, about: 'The program and its arguments, after --; then the runner is "command"' },
} as const satisfies Arguments

type WorkerFlags = { readonly [Name in keyof Given<typeof flags>]?: Given<typeof flags>[Name] | undefined }

export const worker = command({
  flags,
  args,
  examples: [
    ['--agent sysadmin --key-file sysadmin.key', 'until Ctrl-C; the key comes from a file, never from the command line'],
    ['--agent git-1 --role git-admin --runner claude -C ~/project', 'claude does the work, on private copies of this folder'],
    ['--agent a --once -- ./do-task.sh --fast', 'any program: the task as JSON on its stdin, JSON lines from it'],
  ],
  details: () =>
    'Every run works on a private copy of the workspace. What it changed waits for you: braidclaw changes list. The first Ctrl-C lets a running task end within ten seconds, the second gives it back at once.',
  exits: [
    [3, 'the control plane refused the key, or it is the key of another agent or role'],
    [4, 'with --once: the task waits, for an approval or for budget'],
    [130, 'with --once: stopped before the task ended; it is back in the queue'],
  ],
  run: (context, given, { command }) => withServerFiles(context, given, (logged) => workFor(logged, given, command)),
})

/** Works until it is stopped. @throws CliExit */
export async function workFor(context: CliContext, given: WorkerFlags, command: readonly string[] = []): Promise<void> {
  const address = controlAddress(given.url, context.env)
  if (!address.encrypted) context.say(`warning: the key of the agent travels unencrypted to ${address.url}; use https or an ssh tunnel\n`)
  try {
    await work(context, { given, command, url: address.url })
  } catch (error) {
    throw error instanceof PlaneRefusal ? new CliExit(exitOf(error), `error: ${visible(error.message)}`) : error
  }
}

async function work(
  context: CliContext,
  { given, command, url }: { readonly given: WorkerFlags; readonly command: readonly string[]; readonly url: string },
): Promise<void> {
  const opened = await openOwnWorker({
    ...{ setup: setupOf(context, given), ...namesOf(context, given), version, runner: runnerOf(given, command), command },
    ...{ once: given.once, labels: given.label, leaseSeconds: given.lease, network: given.network, model: given.model },
    readable: given.readable?.map((path) => existing(resolve(context.cwd, path))),
    ...{ apiUrl: url, apiKey: keyOf(context, given.keyFile), fetch: createProviderFetch({ baseUrl: url }) },
    say: (line) => context.say(`${visible(line)}\n`),
  })
  if (!opened.ok) throw commandError(visible(opened.message))
  const release = onStop(opened.worker.stop)
  await using _end = atAsyncEnd(async () => {
    release()
    await opened.close()
  })
  const { agentId, role, runner, workspace } = opened
  context.say(
    `ready: ${agentId} (${role}) works for ${url} with ${runner}, on copies of ${visible(workspace)}; stop with Ctrl-C or SIGTERM\n`,
  )
  endWith(context, await opened.worker.run(), given.once ?? false)
}

/** Handles stop signals: the first lets the running task end, the second gives it back at once, the third ends the program. */
function onStop(stop: () => void): () => void {
  let times = 0
  const onSignal = () => {
    times += 1
    if (times > 2) process.exit(exitCodes.cancelled)
    stop()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, onSignal)
  return () => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.off(signal, onSignal)
  }
}

/** Checks the names that were given; the others come with the key. @throws CliExit 2 for a text that is not a name */
function namesOf({ env }: CliContext, { agent = env.CONTROLPLANE_AGENT_ID || undefined, role }: WorkerFlags) {
  return { agentId: agent && nameOf('agent', agent), role: role && nameOf('role', role) }
}

/** Returns the runner; a program after "--" means the runner "command". @throws CliExit 2 when another runner is named */
function runnerOf({ runner }: WorkerFlags, [program]: readonly string[]): WorkerFlags['runner'] {
  if (program === undefined || runner === 'command') return runner
  if (runner === undefined) return 'command'
  throw usageError(`${quote(program)}: only --runner command takes a program; leave it out, or leave out --runner ${runner}`)
}

/** @throws CliExit 2 */
function existing(path: string): string {
  if (existsSync(path)) return path
  throw usageError(`--readable ${visible(path)}: the folder or file does not exist`)
}

/** Loads the settings. The model is one of ours only for our own runner. */
function setupOf(context: CliContext, { workspace, autonomy, approveAllMedium, model, runner }: WorkerFlags): CliSetup {
  const { env } = context
  const isOwn = (runner ?? env.CONTROLPLANE_RUNNER) === 'own'
  const folder = workspace ?? (env.CONTROLPLANE_WORKSPACE_CWD || undefined)
  return loadSetup(context, { workspace: folder, autonomy, approveAllMedium, model: isOwn ? model : undefined }, { stays: true })
}

/** @throws CliExit when the file cannot be read, or others can read it */
function keyOf(context: CliContext, file: string | undefined): string | undefined {
  const key = file === undefined ? undefined : secretIn(resolve(context.cwd, file), '--key-file')
  if (key !== undefined) context.redactor.register(key, 'agent key')
  return key
}

const codes: { readonly [End in WorkerEnd]?: number } = {
  failed: exitCodes.error,
  escalated: exitCodes.error,
  cancelled: exitCodes.error,
  released: exitCodes.cancelled,
  lost: exitCodes.error,
  waiting: exitCodes.approval_needed,
}

function endWith({ say }: CliContext, end: WorkerEnd, once: boolean): void {
  if (!once) return
  if (end === 'none') say('no task waits that may be claimed now\n')
  const code = codes[end]
  if (code !== undefined) throw new CliExit(code)
}
