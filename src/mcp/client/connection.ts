/** Offers what one connected server has: its lists, calls, resources, prompts and completions. */

import type { Client, McpSubscription, Progress, StandardSchemaV1 } from '@modelcontextprotocol/client'
import { aborted, sleep } from '../../kit/abort.ts'
import { isObject, type JsonObject } from '../../kit/json.ts'
import { cut, visible } from '../../kit/text.ts'
import type {
  McpCallOptions,
  McpConnection,
  McpContent,
  McpFailure,
  McpListName,
  McpPorts,
  McpServerInfo,
  McpToolDefinition,
} from '../contract.ts'
import { contentOf, createOutputCheck, type RawAnswer } from './content.ts'
import { allPages, definitionsOf, type Page, promptOf, resourceOf, toolOf } from './definitions.ts'
import type { createExchange, TimedRequest } from './exchange.ts'
import { type Asker, answersTo } from './questions.ts'
import { type Link, wasClosed } from './transports.ts'

export type Parts = {
  readonly client: Client
  readonly link: Link
  readonly ports: McpPorts & { readonly timeoutMs: number }
  readonly server: McpServerInfo
  readonly closed: AbortSignal
  /** The open calls. */
  readonly askers: Set<Asker>
  readonly changes: { listen(listener: (list: McpListName) => void): void; expireAfter(list: McpListName, ms: number): void }
  readonly exchange: ReturnType<typeof createExchange>
}

const [mostRounds, progressMs, updateMs, shortestTtlMs, longestTtlMs] = [10, 100, 250, 30_000, 86_400_000]

/** `more` holds the answers to the questions that the request led to. */
type Send = (more: object, options: object) => Promise<unknown>

export function createConnection(parts: Parts): McpConnection {
  const { client, link, ports, server, closed, changes, exchange } = parts
  const list = createLists(parts)
  const call = createCall(parts)
  const tools = new Map<string, McpToolDefinition>()
  return {
    server,
    closed,
    onListChanged: changes.listen,
    async tools(signal) {
      const found = await list('tools', { 'tools/list': 'tools' }, signal, toolOf)
      if ('why' in found) return found
      tools.clear()
      for (const tool of found.items) tools.set(tool.name, tool)
      return found
    },
    resources: (signal) =>
      list('resources', { 'resources/list': 'resources', 'resources/templates/list': 'resourceTemplates' }, signal, resourceOf),
    prompts: (signal) => list('prompts', { 'prompts/list': 'prompts' }, signal, promptOf),
    callTool(name, input, options) {
      const tool = tools.get(name)
      const toolDefinition = tool && { name, inputSchema: tool.inputSchema }
      const send: Send = (more, limits) => client.callTool({ name, arguments: input, ...more }, { ...limits, toolDefinition } as never)
      return call(options, 'content', send, tool?.outputSchema)
    },
    readResource: (uri, options) =>
      call(options, 'contents', (more, limits) => client.request({ method: 'resources/read', params: { uri, ...more } }, limits)),
    getPrompt(name, input, options) {
      const params = { name, arguments: { ...input } }
      return call(options, 'messages', (more, limits) => client.request({ method: 'prompts/get', params: { ...params, ...more } }, limits))
    },
    async complete(target, argument, signal) {
      const ref = 'prompt' in target ? { type: 'ref/prompt', name: target.prompt } : { type: 'ref/resource', uri: target.template }
      const found = await exchange(signal, ports.timeoutMs, ({ limits }) => client.complete({ ref, argument } as never, limits))
      return 'why' in found ? (found as McpFailure) : found.completion.values.slice(0, 100).map((value) => cut(value, 1_000))
    },
    subscribe: createSubscriptions(parts),
    async close() {
      link.stop(wasClosed)
      await link.ended
    },
  }
}

function createLists({ client, server, changes, exchange, ports: { timeoutMs } }: Parts) {
  /** `members` are the members of the results that hold the items, by method. */
  return async function list<T>(name: McpListName, members: object, signal: AbortSignal, define: (item: JsonObject) => T | string) {
    const items: unknown[] = []
    for (const [method, member] of server.offers.includes(name) ? Object.entries(members) : []) {
      const found = await exchange(signal, timeoutMs, ({ limits }) =>
        allPages(member, (cursor) => client.request({ method, params: cursor === undefined ? {} : { cursor } }, anyPage, limits)),
      )
      if ('why' in found) return found
      items.push(...found.items)
      // A list that lives for no time at all is read whenever it is needed.
      if (found.ttlMs > 0) changes.expireAfter(name, Math.min(longestTtlMs, Math.max(shortestTtlMs, found.ttlMs)))
    }
    return definitionsOf(items, define)
  }
}

function createCall({ ports, askers, exchange }: Parts) {
  const { maxBytes, callTimeoutMs = 120_000 } = ports
  const check = createOutputCheck()

  /** Answers the questions of the server until it gives its result, whose `member` holds the content. */
  async function converse(asker: Asker, member: string, send: (more: object) => Promise<unknown>, outputSchema: JsonObject | undefined) {
    let more = {}
    for (let round = 0; round < mostRounds; round++) {
      const answer = (await send(more)) as RawAnswer
      if (answer.resultType !== 'input_required') {
        const lie = outputSchema && check(outputSchema, answer)
        return lie === undefined ? contentOf({ answer, member, notes: asker.notes }, maxBytes) : { why: cut(visible(lie), 400) }
      }
      more = { inputResponses: await answersTo(answer.inputRequests, asker), requestState: answer.requestState }
    }
    return { why: `it asked more than ${mostRounds} times` }
  }

  return async function call(options: McpCallOptions, member: string, send: Send, outputSchema?: JsonObject): Promise<McpContent> {
    const content = await exchange(options.signal, callTimeoutMs, async ({ limits, hold }): Promise<McpContent | McpFailure> => {
      const asker: Asker = { elicit: options.elicit, signal: limits.signal, notes: [], hold }
      const onprogress = progressTo(options.onProgress, () => hold(false))
      askers.add(asker)
      const sendAgain = (more: object) => send(more, { ...limits, onprogress, allowInputRequired: true })
      return converse(asker, member, sendAgain, outputSchema).finally(() => askers.delete(asker))
    })
    return 'why' in content ? { text: content.why, pictures: [], isError: true, failed: content } : content
  }
}

function createSubscriptions({ client, closed, exchange, ports: { timeoutMs } }: Parts): McpConnection['subscribe'] {
  const watchers = new Set<{ readonly uri: string; notify(): void }>()
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
    for (const watcher of watchers) if (watcher.uri === params.uri) watcher.notify()
  })
  return async function* subscribe(uri, signal) {
    const over = AbortSignal.any([signal, closed])
    let wake = Promise.withResolvers<boolean>()
    const watcher = { uri, notify: () => wake.resolve(true) }
    watchers.add(watcher)
    const isModern = client.getProtocolEra() === 'modern'
    const begin = ({ limits }: TimedRequest): Promise<Partial<McpSubscription>> =>
      isModern
        ? client.listen({ resourceSubscriptions: [uri] }, { signal: over })
        : client.subscribeResource({ uri }, limits).then(() => ({}))
    const begun = await exchange(over, timeoutMs, begin)
    const isRefused = 'why' in begun
    void Promise.race([aborted(over), ...(isRefused ? [] : [begun.closed ?? aborted(over)])]).then(() => wake.resolve(false))
    try {
      while (!isRefused && (await wake.promise) && !over.aborted) {
        wake = Promise.withResolvers()
        yield { uri }
        await sleep(updateMs, over)
        if (over.aborted) return
      }
    } finally {
      watchers.delete(watcher)
      const isLast = ![...watchers].some((other) => other.uri === uri)
      if (isModern && !isRefused) void begun.close?.()
      else if (isLast && !closed.aborted) void client.unsubscribeResource({ uri }).catch(() => {})
    }
  }
}

/** The definitions are judged one by one: a bad one must not lose the others. */
const anyPage: StandardSchemaV1<unknown, Page> = {
  '~standard': { version: 1, vendor: 'braidclaw', validate: (value) => ({ value: isObject(value) ? value : {} }) },
}

function progressTo(onProgress: McpCallOptions['onProgress'], isAlive: () => void): (progress: Progress) => void {
  let next = 0
  return ({ progress, total, message }) => {
    isAlive()
    if (onProgress === undefined || Date.now() < next) return
    next = Date.now() + progressMs
    onProgress(cut(message ?? (total === undefined ? `${progress}` : `${progress} of ${total}`), 500))
  }
}
