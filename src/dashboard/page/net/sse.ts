/** Reads server-sent events from an answer that streams. The format: the HTML standard, "Server-sent events". */

export type ServerEvent = { readonly id?: string; readonly type: string; readonly data: string }

export async function* readEvents(response: Response): AsyncGenerator<ServerEvent> {
  if (!response.body) return
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let held = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    held += value.replaceAll('\r', '')
    const blocks = held.split('\n\n')
    held = blocks.pop() ?? ''
    for (const block of blocks) {
      const event = parse(block)
      if (event) yield event
    }
  }
}

/** Undefined for a comment, such as the ping that keeps the connection open. */
function parse(block: string): ServerEvent | undefined {
  const fields = block.split('\n').map((line) => /^(\w+): ?(.*)$/.exec(line))
  const of = (name: string) => fields.flatMap((field) => (field?.[1] === name ? [field[2] ?? ''] : []))
  const data = of('data')
  if (data.length === 0) return undefined
  const id = of('id').at(-1)
  return { type: of('event').at(-1) ?? 'message', data: data.join('\n'), ...(id === undefined ? {} : { id }) }
}
