/** Connects to a server: first in the newest revision, then in an older one, and over the old HTTP transport where the server has only that. */

import { Client, SdkHttpError } from '@modelcontextprotocol/client'
import { cut, visible } from '../../kit/text.ts'
import type { Connect, McpConnection, McpFailure, McpListName, McpPorts, McpServerInfo, McpTransport } from '../contract.ts'
import { createConnection } from './connection.ts'
import { failureOf } from './exchange.ts'
import { type Asker, answerTo } from './questions.ts'
import { type Link, openLink, wasClosed } from './transports.ts'

const lists: readonly McpListName[] = ['tools', 'resources', 'prompts']

/** `older` says what is worth another attempt. */
type Attempt = McpConnection | (McpFailure & { readonly older?: 'revision' | 'transport' | undefined })

export const connect: Connect = async (to, ports, signal) => {
  const first = await attempt({ to, ports, signal })
  if (!('why' in first) || signal.aborted) return first
  const { older, ...failure } = first
  if (older === undefined) return failure
  const second = await attempt({
    to: older === 'transport' && to.kind === 'http' ? { ...to, kind: 'sse' } : to,
    ports,
    signal,
    isOld: true,
  })
  if (!('why' in second)) return second
  return older === 'transport' ? failure : { why: second.why }
}

type Attempting = { readonly to: McpTransport; readonly ports: McpPorts; readonly signal: AbortSignal; readonly isOld?: boolean }

async function attempt({ to, ports, signal, isOld = to.kind === 'sse' }: Attempting): Promise<Attempt> {
  const { timeoutMs = 30_000 } = ports
  const over = new AbortController()
  const askers = new Set<Asker>()
  const changes = createChanges(over.signal)
  const onChanged = (list: McpListName) => ({ autoRefresh: false, debounceMs: 0, onChanged: () => changes.report(list) })
  const client = new Client(
    { name: 'braidclaw', version: ports.version },
    {
      capabilities: { elicitation: { form: { applyDefaults: true } } },
      versionNegotiation: { mode: isOld ? 'legacy' : 'auto', probe: { timeoutMs: timeoutMs / 3 } },
      listChanged: { tools: onChanged('tools'), resources: onChanged('resources'), prompts: onChanged('prompts') },
    },
  )
  // An older server does not say which call its question belongs to.
  client.setRequestHandler('elicitation/create', ({ params }) => answerTo(params, askers.size === 1 ? [...askers][0] : undefined))
  const state: { died?: string } = {}
  const stopped = (why: string) => {
    state.died ??= why
    over.abort(state.died)
  }
  let link: Link | undefined
  const late = AbortSignal.timeout(timeoutMs)
  const limit = AbortSignal.any([signal, late, over.signal])
  try {
    link = openLink(to, ports, stopped)
    const ended = Promise.withResolvers<never>()
    limit.addEventListener('abort', () => ended.reject(new Error(String(limit.reason))), { once: true })
    await Promise.race([client.connect(link.transport, { timeout: timeoutMs }), ended.promise])
    return createConnection({ client, link, ports, askers, changes, closed: over.signal, server: serverOf(client) })
  } catch (error) {
    const died = state.died === wasClosed ? undefined : state.died
    link?.stop(wasClosed)
    if (late.aborted && died === undefined)
      return { why: `it did not answer the greeting within ${timeoutMs / 1_000} s; run it by hand to see what it does` }
    if (died !== undefined) return { why: died, older: isOld || !/^its process ended/.test(died) ? undefined : 'revision' }
    const isRefused = error instanceof SdkHttpError && [400, 404, 405, 415].includes(error.data.status)
    return { ...failureOf(error), older: isRefused && !isOld ? 'transport' : undefined }
  }
}

function serverOf(client: Client): McpServerInfo {
  const { name = '', version = '' } = client.getServerVersion() ?? {}
  const has = client.getServerCapabilities() ?? {}
  const instructions = client.getInstructions()
  return {
    name: cut(visible(name), 200),
    version: cut(visible(version), 200),
    protocol: client.getNegotiatedProtocolVersion() ?? '',
    ...(instructions !== undefined && { instructions: cut(instructions, 8_000) }),
    offers: [
      ...lists.filter((list) => has[list] !== undefined),
      ...(has.resources?.subscribe ? (['subscriptions'] as const) : []),
      ...(has.completions === undefined ? [] : (['completions'] as const)),
    ],
  }
}

const [changeMs, shortestTtlMs] = [250, 30_000]

/** Gathers the reports that a list changed, and passes each list on once in a while. */
export type Changes = ReturnType<typeof createChanges>

function createChanges(over: AbortSignal) {
  const listeners: ((list: McpListName) => void)[] = []
  const timers = new Map<string, ReturnType<typeof setTimeout>>()
  const again = new Set<McpListName>()
  function after(ms: number, key: string, act: () => void): void {
    if (timers.has(key) || over.aborted) return
    const timer = setTimeout(() => {
      timers.delete(key)
      if (!over.aborted) act()
    }, ms)
    timer.unref()
    timers.set(key, timer)
  }
  const tell = (list: McpListName) => {
    for (const listener of listeners) listener(list)
  }
  /** Tells of the first change at once, because the next call may be of a tool that is no longer what it was; then at most one in `changeMs`. */
  function report(list: McpListName): void {
    if (timers.has(list)) return void again.add(list)
    after(changeMs, list, () => again.delete(list) && report(list))
    if (!over.aborted) tell(list)
  }
  return {
    listen: (listener: (list: McpListName) => void) => void listeners.push(listener),
    report,
    /** A list that lives for no time at all is read whenever it is needed. */
    expireAfter: (list: McpListName, ttlMs: number) =>
      ttlMs > 0 && ttlMs < 2 ** 31 && after(Math.max(ttlMs, shortestTtlMs), `${list} ttl`, () => tell(list)),
  }
}
