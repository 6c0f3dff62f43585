/** Serves with the official library of the newest version: in both eras, or in the older one alone, over stdin or a fetch handler. */

import { inputRequired, inputResponse, McpServer, ResourceTemplate } from '@modelcontextprotocol/server'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

const text = (words: string) => ({ content: [{ type: 'text' as const, text: words }] })
const form = { message: 'Which colour?', requestedSchema: { type: 'object' as const, properties: { colour: { type: 'string' as const } } } }

export function createServer({ era }: { readonly era: 'legacy' | 'modern' }): McpServer {
  const server = new McpServer(
    { name: 'sdk', version: '2.4.0' },
    { instructions: 'be kind', capabilities: { resources: { subscribe: true, listChanged: true }, tools: { listChanged: true } } },
  )
  server.registerTool('echo', { description: 'says it again', inputSchema: z.object({ message: z.string() }) }, ({ message }) =>
    text(message),
  )
  server.registerTool(
    'sum',
    { description: 'adds', inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ sum: z.number() }) },
    ({ a, b }) => ({ ...text(''), structuredContent: { sum: a + b } }),
  )
  server.registerTool(
    'ask',
    { description: 'asks', inputSchema: z.object({ field: z.string().optional() }) },
    async ({ field = 'colour' }, ctx) => {
      const asked = { ...form, requestedSchema: { type: 'object' as const, properties: { [field]: { type: 'string' as const } } } }
      if (era === 'legacy') return text(JSON.stringify(await ctx.mcpReq.elicitInput(asked)))
      const answered = inputResponse(ctx.mcpReq.inputResponses, 'colour')
      return answered.kind === 'missing'
        ? inputRequired({ inputRequests: { colour: inputRequired.elicit(asked) } })
        : text(JSON.stringify(answered))
    },
  )
  server.registerTool('think', { description: 'asks the model' }, async (ctx) => {
    const params = { messages: [{ role: 'user' as const, content: { type: 'text' as const, text: 'hi' } }], maxTokens: 1 }
    if (era === 'legacy') return text(JSON.stringify(await ctx.mcpReq.requestSampling(params)))
    return inputRequired({ inputRequests: { thought: { method: 'sampling/createMessage', params } } })
  })
  server.registerTool('slow', { description: 'reports', inputSchema: z.object({}) }, async (_, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken ?? ''
    await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: 1, total: 2, message: 'half' } })
    // The library forgets who waits for progress as soon as it has read the result.
    await Bun.sleep(30)
    return text('done')
  })
  server.registerTool('grow', { description: 'adds a tool', inputSchema: z.object({}) }, () => {
    server.registerTool(`extra`, { description: 'more', inputSchema: z.object({}) }, () => text('extra'))
    return text('grown')
  })
  server.registerTool('touch', { description: 'updates', inputSchema: z.object({}) }, async () => {
    await server.server.sendResourceUpdated({ uri: 'note://1' })
    return text('touched')
  })
  server.registerResource('note', 'note://1', { description: 'a note' }, (uri) => ({ contents: [{ uri: uri.href, text: 'noted' }] }))
  server.registerResource('notes', new ResourceTemplate('note://{n}', { list: undefined }), {}, (uri) => ({
    contents: [{ uri: uri.href, text: `note ${uri.host}` }],
  }))
  server.registerPrompt('greet', { description: 'greets', argsSchema: z.object({ name: z.string() }) }, ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Hello ${name}` } }],
  }))
  for (const method of ['resources/subscribe', 'resources/unsubscribe'] as const)
    if (era === 'legacy') server.server.setRequestHandler(method, () => ({}))
  return server
}

if (import.meta.main) {
  if (process.argv[2] === 'old') await createServer({ era: 'legacy' }).connect(new StdioServerTransport())
  else serveStdio(createServer)
}
