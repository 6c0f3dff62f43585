/** Implements `mcp add | test | approve | login | logout`: the commands that connect to an MCP server, and ask what it may do. */

import type { AskPerson } from '../../../channels/terminal/approval-prompt.ts'
import { terminalPrompt } from '../../../channels/terminal/audience.ts'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { onInterrupt } from '../../../channels/terminal/signals.ts'
import { resolveExecutable } from '../../../host/setup/effective-policy.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { loginMcp, loginOf, logoutMcp } from '../../../host/toolset/guests/mcp/mcp-login.ts'
import { offeredName } from '../../../host/toolset/guests/mcp/mcp-tools.ts'
import { type Mcp, type McpStatus, openMcp } from '../../../host/toolset/guests/mcp/open-mcp.ts'
import { type TrialRun, tryServer } from '../../../host/toolset/guests/mcp/trial-run.ts'
import { atAsyncEnd } from '../../../kit/errors.ts'
import type { JsonObject } from '../../../kit/json.ts'
import { count, visible } from '../../../kit/text.ts'
import { connect } from '../../../mcp/client/connect.ts'
import { spawnPlain } from '../../../tools/process.ts'
import { command, type Flags, type Given } from '../../args/command.ts'
import { jsonFlag, sandboxFlag } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitCodes, usageError } from '../../exit.ts'
import { confirmed, line, printDifference, yesFlag } from './folder-commands.ts'
import { accessLines, known, printStatus } from './mcp.ts'
import { run as runTool } from './tool-run.ts'

/** All questions of a command go through one `ask`: a second reader of the terminal would take its answers. */
type Opened = {
  readonly context: CliContext
  readonly ask: AskPerson | undefined
  readonly setup: CliSetup
  readonly mcp: Mcp
  readonly signal: AbortSignal
}

async function withMcp(context: CliContext, { sandbox }: Given<typeof sandboxFlag>, work: (opened: Opened) => Promise<void>) {
  const setup = loadSetup(context)
  const mcp = openMcp({ setup, sandbox })
  using interrupt = onInterrupt(() => undefined)
  await using _end = atAsyncEnd(mcp.close)
  await work({ context, ask: terminalPrompt(context), setup, mcp, signal: interrupt.signal })
}

const addFlags = {
  files: { type: 'choice', values: ['none', 'read', 'write'], about: 'Its access to the workspace (default: none)' },
  folder: { type: 'text', many: true, about: 'A folder that it may read, too; may be repeated' },
  host: { type: 'text', many: true, about: 'A host that it may reach; may be repeated' },
  variable: { type: 'text', many: true, about: 'A variable of the environment that it gets; may be repeated' },
  header: { type: 'text', many: true, about: 'A header for an address, as NAME=${VARIABLE}; may be repeated' },
  clientId: { type: 'text', about: 'A client that logs in at an address without a user' },
  clientSecretVariable: { type: 'text', about: 'The variable with the secret of that client' },
  privateKeyVariable: { type: 'text', about: 'Instead of it: the variable with its private key, as PEM' },
  issuer: { type: 'text', about: 'The authorization server of that client' },
  scope: { type: 'text', about: 'Scopes to ask for' },
  ...yesFlag,
  ...sandboxFlag,
} as const satisfies Flags

export const add = command({
  flags: addFlags,
  args: {
    id: { type: 'text', about: 'What the server is called here' },
    words: { type: 'text', many: true, about: 'Its command, after "--", or its address' },
  },
  examples: [
    ['memory -- npx -y @modelcontextprotocol/server-memory', 'a program of this machine'],
    ['docs https://mcp.example.org/mcp', 'a server at an address'],
    ['files --folder ~/notes -- mcp-server-filesystem ~/notes', 'with a folder'],
  ],
  exits: [3],
  run: (context, flags, { id, words }) =>
    withMcp(context, flags, async (opened) => {
      const { files, folder = [], host = [], variable = [], header = [] } = flags
      const [first = ''] = words
      const isAddress = words.length === 1 && /^https?:\/\//i.test(first)
      const headers = Object.fromEntries(header.map((each) => [each.split('=')[0] ?? '', each.slice(each.indexOf('=') + 1)]))
      const permissions = { files: files ?? 'none', folders: [...folder], hosts: [...host], variables: [...variable] }
      const command = { command: first, args: words.slice(1), permissions }
      const auth = clientIn(flags)
      if (auth && !isAddress) throw usageError('--client-id and what belongs to it are for a server at an address; leave them out')
      const { mcp, setup, signal, ask } = opened
      const server = await mcp.add(id, isAddress ? { url: first, headers, ...(auth && { auth }) } : command)
      context.process.stdout.write(`added: ${visible(id)} (${line(server.origin)})\n`)
      if (!flags.yes && ask === undefined)
        return void context.process.stderr.write(`it may not run yet; approve it: braidclaw mcp approve ${id}\n`)
      const question = 'Run it once without network, on a view that is dropped, to see what it needs? [y/N] '
      if (isAddress || flags.yes || !(await confirmed(ask, question))) return approveNow(opened, id, { yes: flags.yes })
      const tried = await tryServer({ setup, server, sandbox: flags.sandbox ?? 'auto', connect, signal })
      if ('why' in tried) context.process.stderr.write(`it was not tried: ${line(tried.why)}\n`)
      else printTrial(context, tried)
      await approveNow(opened, id, 'why' in tried ? {} : { permissions: tried.proposed, isSeen: !('why' in tried.found) })
    }),
})

function printTrial({ process: { stdout } }: CliContext, { found, touched, proposed }: TrialRun): void {
  const changes = touched
    .slice(0, 20)
    .map(({ path, before }) => `  ${before === undefined ? 'made      ' : 'changed   '} ${line(path)} (dropped)`)
  const lines = [
    `tried: ${'why' in found ? `it did not start: ${line(found.why)}` : `it offers ${count(found.tools.length, 'tool')}`}`,
    ...changes,
    'it seems to need:',
    ...accessLines(proposed),
  ]
  stdout.write(`${lines.join('\n')}\n`)
}

type Approving = {
  readonly yes?: boolean | undefined
  readonly permissions?: McpStatus['server']['permissions']
  readonly isSeen?: boolean
  readonly tools?: readonly string[] | undefined
}

/** Asks once before the server starts with its permissions, unless it has already said what it offers, and once before its tools are offered. */
async function approveNow(opened: Opened, id: string, { yes, permissions, isSeen, tools }: Approving): Promise<void> {
  const { context, ask, mcp, signal } = opened
  const mayAsk = async (question: string) => {
    const answer = yes || (await confirmed(ask, question))
    if (answer === undefined)
      throw new CliExit(exitCodes.approval_needed, `error: nobody can be asked here; approve it with: braidclaw mcp approve ${id} --yes`)
    if (!answer) throw new CliExit(exitCodes.denied, `error: ${id} was not approved`)
  }
  const chosen = (status: McpStatus): McpStatus => (permissions ? { ...status, server: { ...status.server, permissions } } : status)
  const before = chosen(mcp.status(id))
  const { transport, project } = before.server
  if (!isSeen && before.state !== 'approved') {
    printStatus(context, before)
    if (transport.kind === 'stdio' || project !== undefined) await mayAsk(`Let ${id} start with these permissions? [y/N] `)
    await mcp.allowStart(id, permissions)
  }
  const found = isSeen ? before : await mcp.probe(id, signal)
  if ('why' in found && found.needsLogin && (await confirmed(ask, `${id} wants a login. Log in now? [y/N] `))) {
    await login(opened, id, {})
    return approveNow(opened, id, { yes, permissions, tools })
  }
  if ('why' in found) throw commandError(`${id}: ${line(found.why)}`)
  const shown = chosen(found)
  printStatus(context, shown)
  if (found.tools.some(({ state }) => state !== 'not approved')) printDifference(context, mcp.difference(id))
  await mayAsk(`Approve exactly these ${count((tools ?? found.tools).length, 'tool')} of ${id}? [y/N] `)
  if (isSeen) await mcp.allowStart(id, permissions)
  await mcp.approve(id, shown, tools)
  context.process.stdout.write(`approved: ${visible(id)}\n`)
}

export const approve = command({
  flags: { ...yesFlag, ...sandboxFlag },
  args: { ...known, tools: { type: 'text', many: true, optional: true, about: 'Only these of its tools' } },
  examples: [
    ['memory', 'shows what it may do and what changed, and asks'],
    ['memory read_graph --yes', 'approves this tool alone'],
  ],
  exits: [3, 4],
  run: (context, flags, { id, tools = [] }) =>
    withMcp(context, flags, (opened) => approveNow(opened, id, { yes: flags.yes, tools: tools.length > 0 ? tools : undefined })),
})

export const test = command({
  flags: { ...jsonFlag, ...sandboxFlag },
  args: {
    ...known,
    call: { type: 'text', many: true, optional: true, about: 'A tool to call through the gate, and its arguments as JSON' },
  },
  examples: [
    ['memory', 'connects, and lists what it offers'],
    [`memory search_nodes '{"query":"Bern"}'`, 'calls an approved tool'],
  ],
  exits: [3, 4],
  run: (context, flags, { id, call = [] }) =>
    withMcp(context, flags, async ({ mcp, signal }) => {
      const [tool, input = '{}'] = call
      if (tool !== undefined) return runTool.run(context, { json: input, sandbox: flags.sandbox }, { name: offeredName(id, tool) })
      const found = await mcp.probe(id, signal)
      if ('why' in found) throw commandError(`${id}: ${line(found.why)}`)
      printStatus(context, found, flags.json)
    }),
})

/** Returns what stands under `auth` in a file: the client that logs in by itself, when one is named. */
function clientIn(flags: Given<typeof addFlags>): JsonObject | undefined {
  const named = {
    client_id: flags.clientId,
    client_secret_variable: flags.clientSecretVariable,
    private_key_variable: flags.privateKeyVariable,
    issuer: flags.issuer,
    scope: flags.scope,
  }
  const given = Object.entries(named).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
  return given.length === 0 ? undefined : Object.fromEntries(given)
}

const loginFlags = {
  clientId: { type: 'text', about: 'A client that was registered by hand, or the https address of its metadata' },
  clientSecretVariable: { type: 'text', about: 'The variable with the secret of that client' },
  scope: { type: 'text', about: 'Scopes to ask for besides those that the server names' },
} as const satisfies Flags

export const logIn = command({
  flags: loginFlags,
  args: known,
  examples: [['docs', 'opens a page and waits; over ssh, paste the address where it ended']],
  run: (context, flags, { id }) => withMcp(context, {}, (opened) => login(opened, id, flags)),
})

function loginFor({ mcp, setup }: Opened, id: string) {
  const found = loginOf(mcp.find(id), setup)
  if (found === undefined) throw usageError(`${id} has no address, so it wants no login`)
  return found
}

async function login(opened: Opened, id: string, { clientId, clientSecretVariable, scope }: Given<typeof loginFlags>): Promise<void> {
  const { context, ask, signal } = opened
  const { process, env } = context
  const found = loginFor(opened, id)
  if (found.server.login) throw usageError(`${id} needs no login: its client logs in by itself; try it: braidclaw mcp test ${id}`)
  await loginMcp({
    ...found,
    client: clientId === undefined ? undefined : { id: clientId, secret: env[clientSecretVariable ?? ''] },
    scope,
    signal,
    async show(address, over) {
      process.stderr.write(`open this page, and agree there:\n${address}\n`)
      openBrowser(context, address, over)
      return ask?.('The browser comes back by itself. If it runs elsewhere, paste the address at which it ended: ', over)
    },
  })
  process.stdout.write(`logged in: ${visible(id)}\n`)
}

/** Does nothing over ssh or without a screen. */
function openBrowser({ env }: CliContext, address: string, signal: AbortSignal): void {
  const own = env.BROWSER || (env.DISPLAY || env.WAYLAND_DISPLAY ? 'xdg-open' : globalThis.process.platform === 'darwin' ? 'open' : '')
  const program = resolveExecutable(own)
  if (env.SSH_CONNECTION || program === undefined) return
  const given = Object.entries(env).map(([name, value = '']) => [name, value])
  void spawnPlain({ argv: [program, address], cwd: '/', env: Object.fromEntries(given), signal, onOutput: () => undefined })
}

export const logOut = command({
  args: known,
  examples: [['docs', 'takes the tokens back at the server, and forgets them here']],
  run: (context, _flags, { id }) =>
    withMcp(context, {}, async (opened) => {
      const { wasLoggedIn, why } = await logoutMcp(loginFor(opened, id))
      if (why !== undefined) context.process.stderr.write(`warning: the tokens stay valid at the server: ${line(why)}\n`)
      context.process.stdout.write(wasLoggedIn ? `logged out: ${visible(id)}\n` : `${visible(id)}: nobody was logged in\n`)
    }),
})
