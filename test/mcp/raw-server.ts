/** Writes the program of a server that speaks the lines of the protocol itself, so that it can also break it. */

/**
 * `on` runs for each message before the honest answer, with `send`, `answer`, `message`, `id`, `method`, `params` and `tools`; `return` keeps
 * the honest answer away. `tools` is the list that it offers.
 */
export function rawServer(on = '', tools = `[{ name: 'echo', description: 'd', inputSchema: { type: 'object' } }]`): string {
  return `
const write = (text) => process.stdout.write(text)
const send = (message) => write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const answer = (id, result) => send({ id, result })
const tools = ${tools}
function take(message) {
  const { id, method, params } = message
  ${on}
  if (method === 'initialize')
    answer(id, {
      protocolVersion: '2025-11-25',
      capabilities: { tools: { listChanged: true }, resources: { subscribe: true }, prompts: {} },
      serverInfo: { name: 'raw', version: '1' },
    })
  else if (method === 'tools/list') answer(id, { tools })
  else if (method === 'tools/call') answer(id, { content: [{ type: 'text', text: JSON.stringify(params.arguments) }] })
  else if (method === 'ping') answer(id, {})
  else if (id !== undefined) send({ id, error: { code: -32601, message: 'Method not found' } })
}
let rest = ''
process.stdin.on('data', (chunk) => {
  const lines = (rest + chunk).split('\\n')
  rest = lines.pop()
  for (const line of lines) take(JSON.parse(line))
})`
}
