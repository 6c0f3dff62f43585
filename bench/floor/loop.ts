/** The least an agent does: ask a model, stream its answer, run the tools it asks for, ask again. No gate, no limits, no errors handled. */

type ToolCall = { readonly id: string; readonly type: 'function'; readonly function: { name: string; arguments: string } }

export type Message = {
  readonly role: 'user' | 'assistant' | 'tool'
  readonly content: string
  readonly tool_calls?: readonly ToolCall[]
  readonly tool_call_id?: string
}

export type Hooks = {
  /** Called with every message before what follows from it. */
  keep(message: Message): void
  /** Called after every tool call with what was done. */
  seal(call: ToolCall, output: string): void
  /** Takes the answer piece by piece; absent: it is printed. */
  say?(text: string): unknown
}

const string = { type: 'string' }
const TOOLS = [
  { name: 'file_read', parameters: { type: 'object', properties: { path: string }, required: ['path'] } },
  { name: 'shell', parameters: { type: 'object', properties: { command: string }, required: ['command'] } },
].map((tool) => ({ type: 'function', function: { ...tool, description: `Runs ${tool.name}` } }))

const print = (text: string): unknown => Bun.write(Bun.stdout, text)

/** `BENCH_URL` is where the model is. */
export async function loop([model = '', prompt = '']: readonly string[], { keep, seal, say = print }: Hooks): Promise<void> {
  const messages: Message[] = [{ role: 'user', content: prompt }]
  keep({ role: 'user', content: prompt })
  for (;;) {
    const reply = await ask(model, messages, say)
    messages.push(reply)
    keep(reply)
    if (reply.tool_calls === undefined) break
    for (const call of reply.tool_calls) {
      const content = await run(call.function.name, JSON.parse(call.function.arguments))
      const message: Message = { role: 'tool', content, tool_call_id: call.id }
      seal(call, content)
      keep(message)
      messages.push(message)
    }
  }
  await say('\n')
}

async function ask(model: string, messages: readonly Message[], say: (text: string) => unknown): Promise<Message> {
  const body = JSON.stringify({ model, stream: true, messages, tools: TOOLS })
  const response = await fetch(`${Bun.env.BENCH_URL}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  const calls: ToolCall[] = []
  let content = ''
  for await (const lines of dataLines(response)) {
    let shown = ''
    for (const line of lines) {
      const delta = line === '[DONE]' ? undefined : JSON.parse(line).choices[0]?.delta
      shown += delta?.content ?? ''
      for (const part of delta?.tool_calls ?? []) {
        const open = calls[part.index]
        if (open === undefined) calls[part.index] = part
        else open.function.arguments += part.function.arguments
      }
    }
    content += shown
    if (shown !== '') await say(shown)
  }
  return { role: 'assistant', content, ...(calls.length > 0 ? { tool_calls: calls } : {}) }
}

/** The `data:` lines of each piece that arrives. */
async function* dataLines(response: Response): AsyncGenerator<string[]> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of response.body ?? []) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield lines.filter((line) => line.startsWith('data: ')).map((line) => line.slice(6).trim())
  }
}

async function run(name: string, input: { readonly path: string; readonly command: string }): Promise<string> {
  if (name === 'file_read') return await Bun.file(input.path).text()
  return await Bun.spawn(['sh', '-c', input.command], { stdin: 'ignore' }).stdout.text()
}
