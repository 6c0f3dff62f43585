/** Offers what one connected server has: its lists, calls, resources, prompts and completions. */

import type { Client, Progress, StandardSchemaV1 } from '@modelcontextprotocol/client'
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
import { type Blocks, contentOf, createOutputCheck, failedContent } from './content.ts'
import { allPages, definitionsOf, type Page, promptOf, resourceOf, toolOf } from './definitions.ts'
import { type Asking, createExchange } from './exchange.ts'
import { type Asker, answerTo } from './questions.ts'
import { type Link, wasClosed } from './transports.ts'

export type ConnectionParts = {
  readonly client: Client
  readonly link: Link
  readonly ports: McpPorts
  readonly server: McpServerInfo
  readonly closed: AbortSignal
  /** The open calls. */
  readonly askers: Set<Asker>
  readonly changes: { listen(listener: (list: McpListName) => void): void; expireAfter(list: McpListName, ttlMs: number): void }
}

const [mostRounds, progressMs, updateMs] = [10, 100, 250]

type Answer = { readonly [key: string]: unknown }
/** Sends a request, or sends it again with the answers to the questions that it led to. */
type Send = (
  options: Asking['rest'] & { readonly onprogress: (progress: Progress) => void; readonly allowInputRequired: true },
  more: object,
) => Promise<unknown>

export function createConnection({ client, link, ports, server, closed, askers, changes }: ConnectionParts): McpConnection {
  const { maxBytes, timeoutMs = 30_000, callTimeoutMs = 120_000 } = ports
  const exchange = createExchange({ client, link, closed })
  const whyNoOutput = createOutputCheck()
  const tools = new Map<string, McpToolDefinition>()
  const watchers = new Set<{ readonly uri: string; notify(): void }>()
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
    for (const watcher of watchers) if (watcher.uri === params.uri) watcher.notify()
  })

  async function list<T>(
    name: McpListName,
    requests: readonly [string, string][],
    signal: AbortSignal,
    define: (item: JsonObject) => T | string,
  ) {
    if (!server.offers.includes(name)) return { items: [], refused: [] }
    const read = ({ rest }: Asking) =>
      Promise.all(
        requests.map(([method, member]) =>
          allPages(member, (cursor) => client.request({ method, params: cursor === undefined ? {} : { cursor } }, anyPage, rest)),
        ),
      )
    const lists = await exchange(signal, timeoutMs, read)
    if ('why' in lists) return lists
    const items: unknown[] = []
    for (const one of lists) {
      if ('why' in one) return one
      items.push(...one.items)
      changes.expireAfter(name, one.ttlMs)
    }
    return definitionsOf(items, define)
  }

  /** Answers the questions of the server until it gives its result. */
  async function call(send: Send, options: McpCallOptions, blocks: (result: Answer) => Blocks): Promise<McpContent> {
    const notes: string[] = []
    const result = await exchange(options.signal, callTimeoutMs, async ({ rest, hold }) => {
      const asker: Asker = { elicit: options.elicit, signal: rest.signal, notes, hold }
      const onprogress = progressTo(options.onProgress, () => hold(false))
      askers.add(asker)
      try {
        let more = {}
        for (let round = 0; round < mostRounds; round++) {
          const answer = await send({ ...rest, onprogress, allowInputRequired: true }, more)
          if (!isObject(answer)) break
          if (answer.resultType !== 'input_required') return blocks(answer)
          more = { inputResponses: await answersTo(answer.inputRequests, asker), requestState: answer.requestState }
        }
        return { why: `it asked more than ${mostRounds} times` }
      } finally {
        askers.delete(asker)
      }
    })
    return 'why' in result ? failedContent(result) : contentOf({ ...result, notes }, maxBytes)
  }

  return {
    server,
    closed,
    async tools(signal) {
      const found = await list('tools', [['tools/list', 'tools']], signal, toolOf)
      if ('why' in found) return found
      tools.clear()
      for (const tool of found.items) tools.set(tool.name, tool)
      return found
    },
    resources: (signal) =>
      list(
        'resources',
        [
          ['resources/list', 'resources'],
          ['resources/templates/list', 'resourceTemplates'],
        ],
        signal,
        resourceOf,
      ),
    prompts: (signal) => list('prompts', [['prompts/list', 'prompts']], signal, promptOf),
    async callTool(name, input, options) {
      const tool = tools.get(name)
      const definition = tool === undefined ? {} : { toolDefinition: { name, inputSchema: tool.inputSchema } }
      const send: Send = (rest, more) => client.callTool({ name, arguments: input, ...more }, { ...rest, ...definition } as never)
      let lie: string | undefined
      const content = await call(send, options, (result) => {
        lie = tool?.outputSchema && whyNoOutput(tool.outputSchema, result)
        return {
          blocks: Array.isArray(result.content) ? result.content : [],
          structured: result.structuredContent,
          isError: result.isError,
        }
      })
      return lie === undefined ? content : failedContent({ why: cut(visible(lie), 400) })
    },
    readResource: (uri, options) =>
      call(
        (rest, more) => client.request({ method: 'resources/read', params: { uri, ...more } }, rest),
        options,
        ({ contents }) => ({ blocks: Array.isArray(contents) ? contents : [] }),
      ),
    getPrompt: (name, input, options) =>
      call(
        (rest, more) => client.request({ method: 'prompts/get', params: { name, arguments: { ...input }, ...more } }, rest),
        options,
        ({ messages }) => ({ blocks: Array.isArray(messages) ? messages : [] }),
      ),
    async complete(target, argument, signal) {
      const ref =
        'prompt' in target
          ? ({ type: 'ref/prompt', name: target.prompt } as const)
          : ({ type: 'ref/resource', uri: target.template } as const)
      const found = await exchange(signal, timeoutMs, ({ rest }) => client.complete({ ref, argument: { ...argument } }, rest))
      return 'why' in found ? (found as McpFailure) : found.completion.values.slice(0, 100).map((value) => cut(value, 1_000))
    },
    async *subscribe(uri, signal) {
      const over = AbortSignal.any([signal, closed])
      let wake = Promise.withResolvers<boolean>()
      const watcher = { uri, notify: () => wake.resolve(true) }
      watchers.add(watcher)
      const isModern = client.getProtocolEra() === 'modern'
      const begin = ({ rest }: Asking): Promise<object> =>
        isModern
          ? client.listen({ resourceSubscriptions: [uri] }, { timeout: timeoutMs, signal: over })
          : client.subscribeResource({ uri }, rest)
      const begun = await exchange(over, timeoutMs, begin)
      const end = () => wake.resolve(false)
      void aborted(over).then(end)
      if ('closed' in begun) void (begun.closed as Promise<unknown>).then(end)
      try {
        while (!('why' in begun) && (await wake.promise) && !over.aborted) {
          wake = Promise.withResolvers()
          yield { uri }
          await sleep(updateMs, over)
          if (over.aborted) return
        }
      } finally {
        watchers.delete(watcher)
        const isLast = ![...watchers].some((other) => other.uri === uri)
        if ('close' in begun) void (begun.close as () => Promise<void>)()
        else if (isLast && !closed.aborted) void client.unsubscribeResource({ uri }, { timeout: timeoutMs }).catch(() => {})
      }
    },
    onListChanged: changes.listen,
    async close() {
      link.stop(wasClosed)
      await link.ended
    },
  }
}

/** The definitions are judged one by one: a bad one must not lose the others. */
const anyPage: StandardSchemaV1<unknown, Page> = {
  '~standard': { version: 1, vendor: 'braidclaw', validate: (value) => ({ value: isObject(value) ? value : {} }) },
}

/** @throws Error that says which question it cannot be asked */
async function answersTo(requests: unknown, asker: Asker): Promise<JsonObject> {
  const entries = Object.entries(isObject(requests) ? requests : {})
  // One after the other: a person can answer only one question at a time.
  const answers: [string, never][] = []
  if (entries.length === 0) await sleep(updateMs, asker.signal)
  for (const [key, request] of entries) {
    const { method, params } = isObject(request) ? request : {}
    const answer = method === 'elicitation/create' ? await answerTo(params, asker) : { why: method }
    if ('why' in answer) throw new TypeError(`it asks for ${String(answer.why)}, which is not offered`)
    answers.push([key, answer as never])
  }
  return Object.fromEntries(answers)
}

function progressTo(onProgress: McpCallOptions['onProgress'], alive: () => void): (progress: Progress) => void {
  let next = 0
  return ({ progress, total, message }) => {
    alive()
    if (onProgress === undefined || Date.now() < next) return
    next = Date.now() + progressMs
    onProgress(cut(message ?? (total === undefined ? `${progress}` : `${progress} of ${total}`), 500))
  }
}
