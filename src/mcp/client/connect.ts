/** Connects to a server: first in the newest revision, then in an older one, and over the old HTTP transport where the server has only that. */

import { Client, SdkHttpError } from '@modelcontextprotocol/client'
import { aborted } from '../../kit/abort.ts'
import { cut, visible } from '../../kit/text.ts'
import type { Connect, McpConnection, McpFailure, McpListName, McpPorts, McpServerInfo, McpTransport } from '../contract.ts'
import { createConnection } from './connection.ts'
import { failureOf } from './exchange.ts'
import { type Asker, answerTo } from './questions.ts'
import { type Link, openLink, wasClosed } from './transports.ts'

const lists: readonly McpListName[] = ['tools', 'resources', 'prompts']
const changeMs = 250

/** `older` says what is worth another attempt. */
type Attempt = McpConnection | (McpFailure & { readonly older?: 'revision' | 'transport' | undefined })

export const connect: Connect = async (to, ports, signal) => {
  const first = await attempt({ to, ports, signal })
  if (!('why' in first) || signal.aborted) return first
  const { older, ...failure } = first
  if (older === undefined) return failure
  const next: McpTransport = older === 'transport' && to.kind === 'http' ? { ...to, kind: 'sse' } : to
  const second = await attempt({ to: next, ports, signal, isOld: true })
  return 'why' in second && older === 'transport' ? failure : second
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
  const limit = AbortSignal.any([signal, late])
  try {
    link = openLink(to, ports, stopped)
    const connected = client.connect(link.transport, { timeout: timeoutMs }).then(() => true)
    if (!(await Promise.race([connected, aborted(limit)]))) throw new Error(String(limit.reason))
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

/**
 * Tells listeners that a list changed: of the first report at once, because the next call may be of a tool that is no longer what it was, and
 * then at most once in `changeMs`.
 */
function createChanges(over: AbortSignal) {
  const listeners: ((list: McpListName) => void)[] = []
  const [waiting, again] = [new Set<string>(), new Set<McpListName>()]
  function after(ms: number, key: string, act: () => void): void {
    if (waiting.has(key)) return
    waiting.add(key)
    const end = () => {
      waiting.delete(key)
      if (!over.aborted) act()
    }
    setTimeout(end, ms).unref()
  }
  function tell(list: McpListName): void {
    if (!over.aborted) for (const listener of listeners) listener(list)
  }
  function report(list: McpListName): void {
    if (waiting.has(list)) return void again.add(list)
    after(changeMs, list, () => again.delete(list) && report(list))
    tell(list)
  }
  return {
    listen: (listener: (list: McpListName) => void) => void listeners.push(listener),
    report,
    expireAfter: (list: McpListName, ms: number) => after(ms, `${list} ttl`, () => tell(list)),
  }
}
