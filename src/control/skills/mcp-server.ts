/** Serves one tool over the Model Context Protocol on standard input and output, for runners such as claude and codex. */

import { errorText } from '../../kit/errors.ts'
import { isObject, parseJson } from '../../kit/json.ts'

export type McpTool = {
  readonly name: string
  readonly description: string
  readonly parameters: object
  readonly call: (input: { readonly [name: string]: unknown }) => string | Promise<string>
}

type RpcReply = { readonly result: object } | { readonly error: { readonly code: number; readonly message: string } }

/** Lists the versions of the protocol, the newest first. */
const versions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']
const maxLine = 1_048_576

/** Answers one line of JSON-RPC; undefined for a notification. Never throws. */
export function createMcpServer(tool: McpTool, version: string): (line: string) => Promise<string | undefined> {
  async function reply(method: unknown, params: unknown): Promise<RpcReply> {
    if (method === 'initialize') return { result: greeting(params, version) }
    if (method === 'ping') return { result: {} }
    if (method === 'tools/list')
      return { result: { tools: [{ name: tool.name, description: tool.description, inputSchema: tool.parameters }] } }
    if (method === 'tools/call') return await called(tool, params)
    return { error: { code: -32601, message: `unknown method ${JSON.stringify(method)}` } }
  }

  return async (line) => {
    const message = parseJson(line)
    if (!isObject(message) || message.jsonrpc !== '2.0')
      return text(null, { error: message === undefined ? notJson : { code: -32600, message: 'this is not a request of JSON-RPC 2.0' } })
    const { id, method, params } = message
    if (id === undefined || id === null) return undefined
    return text(id, await reply(method, params))
  }
}

export async function serveMcp(
  answer: (line: string) => Promise<string | undefined>,
  io: { readonly input: AsyncIterable<Uint8Array>; readonly write: (text: string) => unknown },
): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const piece of io.input) {
    const lines = `${rest}${decoder.decode(piece, { stream: true })}`.split('\n')
    rest = (lines.pop() ?? '').slice(0, maxLine)
    for (const line of lines.filter((one) => one.trim() !== '')) {
      const reply = await answer(line)
      if (reply !== undefined) io.write(`${reply}\n`)
    }
  }
}

function greeting(params: unknown, version: string): object {
  const asked = isObject(params) ? params.protocolVersion : undefined
  return {
    protocolVersion: versions.find((one) => one === asked) ?? versions[0],
    capabilities: { tools: {} },
    serverInfo: { name: 'braidclaw-skills', version },
  }
}

/** Returns a failed call as a result that the model reads, as the protocol asks. */
async function called(tool: McpTool, params: unknown): Promise<RpcReply> {
  if (!isObject(params) || params.name !== tool.name) return { error: { code: -32602, message: `there is only the tool ${tool.name}` } }
  try {
    const answer = await tool.call(isObject(params.arguments) ? params.arguments : {})
    return { result: { content: [{ type: 'text', text: answer }] } }
  } catch (error) {
    return { result: { content: [{ type: 'text', text: errorText(error) }], isError: true } }
  }
}

const notJson = { code: -32700, message: 'the line is not JSON' }

function text(id: unknown, reply: RpcReply): string {
  return JSON.stringify({ jsonrpc: '2.0', id, ...reply })
}
