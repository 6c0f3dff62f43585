/** Connects to a server: first in the newest revision, then in an older one, and over the old HTTP transport where the server has only that. */

import { Client, SdkHttpError } from '@modelcontextprotocol/client'
import { aborted } from '../../kit/abort.ts'
import { cut, visible } from '../../kit/text.ts'
import type { Connect, McpConnection, McpFailure, McpListName, McpPorts, McpServerInfo, McpTransport } from '../contract.ts'
import { createConnection } from './connection.ts'
import { createExchange, failureOf } from './exchange.ts'
import { type Asker, answerTo } from './questions.ts'
import { type Link, openLink, wasClosed } from './transports.ts'

const lists = ['tools', 'resources', 'prompts'] as const
const changeMs = 250

/** `older` says what is worth another attempt. */
type Attempt = McpConnection | (McpFailure & { readonly older?: 'revision' | 'transport' | undefined })

export const connect: Connect = async (to, ports, signal) => {
  const first = await attempt(ports, signal, to)
  if (!('why' in first) || signal.aborted) return first
  const { older, ...failure } = first
  if (older === undefined) return failure
  const next: McpTransport = older === 'transport' && to.kind === 'http' ? { ...to, kind: 'sse' } : to
  const second = await attempt(ports, signal, next, true)
  return 'why' in second && older === 'transport' ? failure : second
}

async function attempt(ports: McpPorts, signal: AbortSignal, to: McpTransport, isOld = to.kind === 'sse'): Promise<Attempt> {
  const { timeoutMs = 30_000 } = ports
  const over = new AbortController()
  const { signal: closed } = over
  const askers = new Set<Asker>()
  const changes = createChanges(closed)
  const onChanged = (list: McpListName) => [list, { autoRefresh: false, debounceMs: 0, onChanged: () => changes.report(list) }] as const
  const client = new Client(
    { name: 'braidclaw', version: ports.version },
    {
      capabilities: { elicitation: { form: { applyDefaults: true } } },
      versionNegotiation: { mode: isOld ? 'legacy' : 'auto', probe: { timeoutMs: timeoutMs / 3 } },
      listChanged: Object.fromEntries(lists.map(onChanged)),
    },
  )
  // An older server does not say which call its question belongs to.
  client.setRequestHandler('elicitation/create', ({ params }) => answerTo(params, askers.size === 1 ? [...askers][0] : undefined))
  let link: Link | undefined
  const late = AbortSignal.timeout(timeoutMs)
  const limit = AbortSignal.any([signal, late])
  try {
    link = openLink(to, ports, (why) => over.abort(why))
    const connected = client.connect(link.transport, { timeout: timeoutMs }).then(() => true)
    if (!(await Promise.race([connected, aborted(limit)]))) throw new Error(String(limit.reason))
    const means = { client, link, closed, server: serverOf(client), exchange: createExchange(client, link, closed) }
    return createConnection({ ...means, ports: { ...ports, timeoutMs }, askers, changes })
  } catch (error) {
    const died = closed.aborted && closed.reason !== wasClosed ? String(closed.reason) : undefined
    link?.stop(wasClosed)
    if (late.aborted && died === undefined)
      return { why: `it did not answer the greeting within ${timeoutMs / 1_000} s; run it by hand to see what it does` }
    if (died !== undefined) return { why: died, older: isOld || !/^its process ended/.test(died) ? undefined : 'revision' }
    const isRefused = error instanceof SdkHttpError && [400, 404, 405, 415].includes(error.data.status)
    return { ...failureOf(error), older: isRefused && !isOld ? 'transport' : undefined }
  }
}

function serverOf(client: Client): McpServerInfo {
  const { name, version } = client.getServerVersion() ?? {}
  const has = client.getServerCapabilities() ?? {}
  const instructions = client.getInstructions()
  return {
    name: cut(visible(name ?? ''), 200),
    version: cut(visible(version ?? ''), 200),
    protocol: client.getNegotiatedProtocolVersion() ?? '',
    ...(instructions !== undefined && { instructions: cut(instructions, 8_000) }),
    offers: [
      ...lists.filter((list) => has[list] !== undefined),
      ...(has.resources?.subscribe ? ['subscriptions' as const] : []),
      ...(has.completions ? ['completions' as const] : []),
    ],
  }
}

/**
 * Tells listeners that a list changed: of the first report at once, because the next call may be of a tool that is no longer what it was, and
 * then at most once in `changeMs`.
 */
function createChanges(over: AbortSignal) {
  const listeners: ((list: McpListName) => void)[] = []
  const [resting, again, expiring] = [new Set<McpListName>(), new Set<McpListName>(), new Set<McpListName>()]
  function report(list: McpListName): void {
    if (over.aborted) return
    if (resting.has(list)) return void again.add(list)
    for (const listener of listeners) listener(list)
    resting.add(list)
    const end = () => resting.delete(list) && again.delete(list) && report(list)
    setTimeout(end, changeMs).unref()
  }
  return {
    listen: (listener: (list: McpListName) => void) => void listeners.push(listener),
    report,
    expireAfter(list: McpListName, ms: number): void {
      if (!expiring.has(list)) setTimeout(() => expiring.delete(list) && report(list), ms).unref()
      expiring.add(list)
    },
  }
}
