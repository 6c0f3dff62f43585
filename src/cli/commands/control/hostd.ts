/** Implements `hostd`: serve, check and list. */

import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { onInterrupt } from '../../../channels/terminal/signals.ts'
import type { FieldProblem } from '../../../config/text/table-reader.ts'
import type { CallRecord, RecordCall } from '../../../control/hostd/answer-request.ts'
import type { Catalogue } from '../../../control/hostd/catalogue/operation.ts'
import { readCatalogue, rowOf } from '../../../control/hostd/catalogue/read-catalogue.ts'
import { listOps } from '../../../control/hostd/client.ts'
import type { OperationRow } from '../../../control/hostd/hostd-wire.ts'
import { serveHostd } from '../../../control/hostd/serve-hostd.ts'
import { withRecords } from '../../../host/open/open-records.ts'
import { type createRecord, recoverRecord } from '../../../host/records/integrity/create-record.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { count, visible } from '../../../kit/text.ts'
import { command, type Flags, type Given } from '../../args/command.ts'
import { jsonFlag } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitCodes, usageError } from '../../exit.ts'
import { printList } from '../../print-list.ts'
import { withLogFile } from '../../server-files.ts'

const socketFlag = {
  socket: {
    type: 'text',
    about: 'The Unix socket (default: CONTROLPLANE_HOSTD_SOCKET, else /run/braidclaw/hostd.sock for root, else run/hostd.sock in the home)',
  },
} as const satisfies Flags
const catalogueFlag = {
  catalogue: { type: 'text', about: 'A TOML file with the operations, instead of the built-in ones' },
} as const satisfies Flags
const serveFlags = {
  ...socketFlag,
  ...catalogueFlag,
  group: { type: 'text', about: 'A group whose members may connect, besides our own user' },
  controlUser: { type: 'text', about: 'The user of the control plane: it may connect, and its word about approvals counts' },
  logFile: { type: 'text', about: 'Write the log to this file instead of stderr; a full file (5 MB) becomes NAME.1' },
} as const satisfies Flags
/** @throws CliExit when it cannot start; it ends with exit code 0 on a stop signal */
export const serve = command({
  flags: serveFlags,
  examples: [
    ['', 'the built-in operations, for our own user'],
    ['--catalogue /etc/braidclaw/hostd.toml --group braidclaw', 'own operations, for a group'],
  ],
  run: (context, given) => withLogFile(context, given.logFile, (logged) => run(logged, given)),
})

async function run(context: CliContext, given: Given<typeof serveFlags>): Promise<void> {
  const setup = loadSetup(context, {}, { stays: true })
  if (!setup.config.receipts.enabled) throw commandError('hostd keeps a receipt of every attempt; set "enabled = true" in [receipts]')
  const gid = given.group === undefined ? undefined : idByName('group', given.group)
  const control = given.controlUser === undefined ? [] : [idByName('user', given.controlUser)]
  const catalogue = withPeers(usable(context, given.catalogue), { gid, control })
  const socket = socketIn(context, given.socket)
  using interrupt = onInterrupt(() => {})
  await withRecords(setup, async ({ record }) => {
    await recoverRecord(setup, record)
    const served = await serveHostd({
      socket,
      catalogue,
      folder: join(setup.paths.home, 'hostd', 'running'),
      record: recordWith(record.recordAction),
      prove: record.proveReceipts,
      log: setup.log,
      ready({ available, all }) {
        const here = `${available} of ${count(all, 'operation')} available here`
        setup.context.say(`ready: ${socket} (${here}; see "hostd list"); stop with Ctrl-C or SIGTERM\n`)
      },
      signal: interrupt.signal,
      now: Date.now,
      gid,
    })
    if (!served.ok) throw commandError(served.message)
  })
}

function recordWith(recordAction: ReturnType<typeof createRecord>['recordAction']): RecordCall {
  return ({ op, risk, outcome, error, details }: CallRecord) => {
    const result = { error: error || undefined, denied: outcome === 'denied' || undefined }
    const receipt = recordAction({ conversationId: 'hostd', tool: `hostd.${op}`, input: details, risk, ...result })
    if (receipt === undefined) throw new Error('receipts are off')
    return receipt
  }
}

function withPeers(
  catalogue: Catalogue,
  { gid, control }: { readonly gid: number | undefined; readonly control: readonly number[] },
): Catalogue {
  const { server } = catalogue
  const gids = gid === undefined ? server.gids : [...server.gids, gid]
  // A user who may bring approvals must be able to connect.
  const controlUids = [...server.controlUids, ...control]
  return { ...catalogue, server: { ...server, gids, controlUids, uids: [...server.uids, ...controlUids] } }
}

export const check = command({
  args: { file: { type: 'text', about: 'The catalogue' } },
  flags: jsonFlag,
  examples: [['/etc/braidclaw/hostd.toml', 'every problem at once, by line and field']],
  run(context, { json = false }, { file }) {
    const read = readCatalogue(resolve(context.cwd, file), ownUid())
    if (!read.ok) throw commandError(read.message)
    const { problems, catalogue } = read.parsed
    if (json) context.process.stdout.write(`${JSON.stringify({ ok: problems.length === 0, problems })}\n`)
    else if (problems.length === 0) context.process.stdout.write(`valid: ${countsOf(rows(catalogue))}\n`)
    else context.process.stdout.write(problems.map((problem) => `${file}:${problemLine(problem)}\n`).join(''))
    if (problems.length > 0) throw new CliExit(exitCodes.error)
  },
})

/** Asks the running hostd, if there is one and no catalogue is named. */
export const list = command({
  flags: { ...socketFlag, ...catalogueFlag, ...jsonFlag },
  examples: [
    ['', 'of the running hostd, else the built-in ones'],
    ['--catalogue /etc/braidclaw/hostd.toml', 'of a file'],
  ],
  async run(context, { socket, catalogue, json = false }) {
    const asked = catalogue === undefined ? await listOps(socketIn(context, socket)) : undefined
    if (asked && !asked.ok && socket !== undefined) throw commandError(asked.error.message)
    if (asked && !asked.ok) context.process.stderr.write(`these are the built-in operations: ${asked.error.message}\n`)
    const items = asked?.ok ? asked.operations : rows(usable(context, catalogue))
    printList(context, { items, json, lines: items.map(rowLine), none: 'the catalogue has no operations' })
  },
})

function rowLine({ op, about, risk, approval, params, available, unavailable }: OperationRow): string {
  const what = visible(available ? about : `not available: ${unavailable}`)
  const first = `${op.padEnd(18)} ${risk.padEnd(6)} ${(approval ? 'approval' : '').padEnd(8)}  ${what}`
  return [first, ...Object.entries(params).map(([name, words]) => `${''.padEnd(20)}${visible(`${name}: ${words}`)}`)].join('\n')
}

function rows(catalogue: Catalogue): readonly OperationRow[] {
  return catalogue.operations.map((operation) => rowOf(operation, { platform: process.platform, uid: ownUid() }))
}

function countsOf(found: readonly OperationRow[]): string {
  return `${count(found.length, 'operation')}, ${found.filter(({ available }) => available).length} available here`
}

/** @throws CliExit that names every problem */
function usable(context: CliContext, path: string | undefined): Catalogue {
  const read = readCatalogue(path === undefined ? undefined : resolve(context.cwd, path), ownUid())
  if (!read.ok) throw commandError(read.message)
  const { problems, catalogue } = read.parsed
  if (problems.length > 0)
    throw new CliExit(exitCodes.error, problems.map((problem) => `error: ${path}:${problemLine(problem)}`).join('\n'))
  return catalogue
}

function problemLine({ line, field, message }: FieldProblem): string {
  return visible(`${line === undefined ? '' : `${line}: `}${field === '' ? '' : `${field} `}${message}`)
}

function socketIn({ cwd, home, env }: CliContext, given: string | undefined): string {
  const named = given ?? env.CONTROLPLANE_HOSTD_SOCKET
  if (named) return resolve(cwd, named)
  return ownUid() === 0 ? '/run/braidclaw/hostd.sock' : join(home, 'run', 'hostd.sock')
}

function ownUid(): number {
  return process.getuid?.() ?? -1
}

/**
 * Finds the number of a user or group in the files of the system. A number is taken as it is; users of a directory service are named by number.
 * @throws CliExit 2
 */
export function idByName(kind: 'user' | 'group', name: string, read = (path: string) => readFileSync(path, 'utf8')): number {
  if (/^\d{1,9}$/.test(name)) return Number(name)
  const file = kind === 'user' ? '/etc/passwd' : '/etc/group'
  // An empty field is not 0, which would be root.
  const fields = read(file)
    .split('\n')
    .map((line) => line.split(':'))
    .find(([first]) => first === name)
  const id = fields?.[2] ?? ''
  if (/^\d{1,10}$/.test(id)) return Number(id)
  throw usageError(`the ${kind} "${name}" does not exist in ${file}; create it, or give its number`)
}
