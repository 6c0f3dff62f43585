/** Runs a server of this machine once, on a private view and without network, to find out what it needs. Nothing that it writes stays. */

import { existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { atEnd } from '../../../../kit/errors.ts'
import { forms } from '../../../../kit/settings.ts'
import type { Connect, McpFailure } from '../../../../mcp/contract.ts'
import type { Change } from '../../../../runtime/changes.ts'
import type { SandboxKind, Spawn, SpawnResult } from '../../../../sandbox/contract.ts'
import type { Setup } from '../../../api.ts'
import { policyOf } from '../../../setup/effective-policy.ts'
import { createConfinement } from '../../sandbox/command-sandbox.ts'
import { openDefinitions } from './approved-definitions.ts'
import { expanded, type McpPermissions, type McpServer } from './configured-servers.ts'
import { definitionsOf, portsOf } from './server-connections.ts'

export type TrialRun = Exclude<Awaited<ReturnType<typeof tryServer>>, McpFailure>

type Trial = {
  readonly setup: Setup
  readonly server: McpServer
  readonly sandbox: SandboxKind
  readonly connect: Connect
  readonly signal: AbortSignal
}

/**
 * Keeps what the server offers, so that it can be approved without another start. @returns what it offers or why it did not say, its changes of
 * the folder, which were dropped, and what it seems to need; or why it cannot run here at all
 */
export async function tryServer({ setup, server, sandbox, connect, signal }: Trial) {
  const transport = expanded(server, setup)
  if ('why' in transport) return transport
  if (transport.kind !== 'stdio') return { why: 'only a server on this machine can be tried' }
  const policy = policyOf(setup.config, setup.paths, setup.context.env)
  const own = createConfinement(sandbox, { setup, policy })
  const { confined, transaction } = await own.mode()
  if (!confined || !transaction) return { why: 'no private view of this folder works here; braidclaw doctor says what is missing' }
  const folders = [...new Set([...foldersIn(transport.argv), ...server.permissions.folders])]
  const over = new AbortController()
  const state: { printed: string; ended?: Promise<SpawnResult> } = { printed: '' }
  const spawn: Spawn = ({ network: _, onOutput, ...plan }) => {
    state.ended = own.spawn({
      ...plan,
      readOnly: false,
      readablePaths: folders.map((path) => ({ path })),
      view: 'private',
      onOutput(chunk, from) {
        if (from === 'stderr') state.printed = (state.printed + new TextDecoder().decode(chunk)).slice(-20_000)
        onOutput?.(chunk, from)
      },
    })
    return state.ended
  }
  const { maxResultBytes: maxBytes } = setup.config.limits
  const trial = { server, setup, maxBytes, policy, own: { ...own, spawn }, cwd: policy.workspace, closed: over.signal }
  using _end = atEnd(() => {
    over.abort()
    own.close()
  })
  const connection = await connect(transport, { ...portsOf(trial), timeoutMs: 15_000 }, signal)
  const found = 'why' in connection ? connection : await definitionsOf(connection, signal)
  if (!('why' in connection)) await connection.close()
  over.abort()
  const result = await state.ended
  if (result?.ok === false) return { why: result.message }
  const touched = (await result?.view?.changes(signal)) ?? []
  result?.view?.drop()
  if (!('why' in found)) openDefinitions(setup.paths.home).keepSeen(server.key, found)
  return { found, touched, proposed: propose({ server, folders, touched, printed: state.printed }) }
}

/** Returns the folders that the words of the command name; a program needs the packages beside it. */
function foldersIn(argv: readonly string[]): readonly string[] {
  const paths = argv.filter((word) => word.startsWith('/') && existsSync(word) && !/^\/(usr|bin|sbin|lib\w*)\//.test(word))
  return paths.map((path) => (statSync(path).isDirectory() ? path : (/^.*?\/node_modules(?=\/)/.exec(path)?.[0] ?? dirname(path))))
}

const mostProposed = 8

type Observed = {
  readonly server: McpServer
  readonly folders: readonly string[]
  readonly touched: readonly Change[]
  readonly printed: string
}

/** Reads what it missed from its messages: it may lie there, so a person sees each name before it is granted. */
function propose({ server: { permissions, transport }, folders, touched, printed }: Observed): McpPermissions {
  const known = transport.kind === 'stdio' ? Object.keys(transport.env) : []
  const found = (pattern: RegExp, fits: string) =>
    [...printed.matchAll(pattern)].flatMap(([, name = '']) => (new RegExp(fits).test(name) ? [name] : []))
  const hosts = found(
    /(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|resolve host:?|lookup|https?:\/\/)\s*["']?([a-z\d-]+(?:\.[a-z\d-]+)+)/gi,
    forms.domain.pattern,
  )
  const variables = found(/\b([A-Z][A-Z\d]*(?:_[A-Z\d]+)*_(?:KEY|TOKEN|SECRET|PASSWORD|ID|URL|PATH))\b/g, forms.variable.pattern)
  const first = (names: readonly string[]) => [...new Set(names)].slice(0, mostProposed)
  // New files can lie in the folder that every server has for itself.
  const isWriter = touched.some(({ before }) => before !== undefined)
  return {
    files: isWriter ? 'write' : permissions.files,
    folders,
    hosts: first([...permissions.hosts, ...hosts]),
    variables: first([...permissions.variables, ...variables]).filter((name) => !known.includes(name)),
  }
}
