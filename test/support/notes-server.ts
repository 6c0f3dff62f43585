/** The program of an MCP server with one tool; it speaks just enough of the protocol, in lines of JSON. */
export const notesServer = `import { createInterface } from 'node:readline'
const tool = { name: 'add_note', description: 'Write something down', inputSchema: { type: 'object', properties: { text: { type: 'string' } } } }
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'notes', version: '1' } }),
  'tools/list': () => ({ tools: [tool] }),
  'tools/call': ({ arguments: { text } }) => ({ content: [{ type: 'text', text: 'noted: ' + text }] }),
}
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  const result = answers[method]?.(params)
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: 'unknown' } }) }))
})
`
