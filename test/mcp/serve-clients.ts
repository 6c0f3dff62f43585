/** Connects clients of both generations of the SDK to the MCP server of a test home. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Client, type ClientCapabilities, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { executable, type Nest } from '../support/cli.ts'
import { given } from '../support/needs.ts'

const olderSdk = join(import.meta.dir, '../control/foreign/node_modules/@modelcontextprotocol/sdk/dist/esm')

/** `auto` speaks 2026-07-28, `legacy` 2025-11-25, and `1.32.2` is the SDK before this one. */
export const generations = ['auto', 'legacy', '1.32.2'] as const
export type Generation = (typeof generations)[number]

export function hasGeneration(generation: Generation): boolean {
  return given(
    generation !== '1.32.2' || existsSync(olderSdk) || Bun.env.CI === 'true',
    'the older MCP SDK (run scripts/setup-debian --tests)',
  )
}

/** Answers a question of the server; absent: the client declares that it cannot ask anybody. */
type Answer = { readonly action: string; readonly content?: object }
export type Answering = (message: string) => Answer | Promise<Answer>

export type Connected = AsyncDisposable & {
  readonly client: Client
  /** Returns the text of the result, and whether it is an error. */
  call(name: string, input?: object, options?: object): Promise<readonly [text: string, isError: boolean]>
  readonly pid?: number | undefined
}

type Connecting = { readonly generation?: Generation; readonly answering?: Answering }

export function overStdio(
  at: Nest,
  args: readonly string[] = [],
  { env, ...how }: Connecting & { readonly env?: object } = {},
): Promise<Connected> {
  const spawned = { command: executable, args: ['mcp', 'serve', ...args], env: { ...at.env, ...env }, cwd: at.workspace, stderr: 'ignore' }
  return connect(how, {
    now: () => new StdioClientTransport(spawned as never),
    before: async () => new (await import(`${olderSdk}/client/stdio.js`)).StdioClientTransport(spawned),
  })
}

export function overHttp(url: string, token: string, how: Connecting = {}): Promise<Connected> {
  const [at, options] = [new URL('/mcp', url), { requestInit: { headers: { authorization: `Bearer ${token}` } } }]
  return connect(how, {
    now: () => new StreamableHTTPClientTransport(at, options),
    before: async () => new (await import(`${olderSdk}/client/streamableHttp.js`)).StreamableHTTPClientTransport(at, options),
  })
}

type Transports = { now(): object; before(): Promise<object> }

async function connect({ generation = 'auto', answering }: Connecting, { now, before }: Transports): Promise<Connected> {
  const isOld = generation === '1.32.2'
  const capabilities: ClientCapabilities = answering ? { elicitation: {} } : {}
  const info = { name: 'test', version: '1' }
  const client: Client = isOld
    ? new (await import(`${olderSdk}/client/index.js`)).Client(info, { capabilities })
    : new Client(info, { capabilities, versionNegotiation: { mode: generation } })
  const transport = isOld ? await before() : now()
  if (answering) {
    const method = isOld ? (await import(`${olderSdk}/types.js`)).ElicitRequestSchema : 'elicitation/create'
    client.setRequestHandler(method, async ({ params }: { params: { message: string } }) => answering(params.message) as never)
  }
  await client.connect(transport as never)
  return {
    client,
    pid: 'pid' in transport && typeof transport.pid === 'number' ? transport.pid : undefined,
    async call(name, input = {}, options) {
      const params = { name, arguments: input as Record<string, never> }
      const { content, isError = false } = await (isOld
        ? (client.callTool as (...all: unknown[]) => ReturnType<Client['callTool']>)(params, undefined, options)
        : client.callTool(params, options))
      const [first] = content
      return [first?.type === 'text' ? first.text : '', isError]
    },
    [Symbol.asyncDispose]: () => client.close(),
  }
}
