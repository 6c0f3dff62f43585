/** Simulates Telegram's Bot API on loopback: long polling with offsets, messages, files, rate limits and refusals in Telegram's wording. */

export const TOKEN = '123456789:AAfakeTokenOfTheTestBot_0123456789abc'
export const BOT = { id: 123_456_789, is_bot: true, first_name: 'Braid', username: 'braid_test_bot' }
export const ADA = { id: 5_000_000_001, is_bot: false, first_name: 'Ada' }

type Fields = Record<string, unknown>

/** Replaces an answer. `stage: 'after'` carries out the request first: a lost reply. */
export type Mishap = { readonly status: number; readonly body?: unknown; readonly stage?: 'after' }

export type SentMessage = { readonly chat: number; readonly text: string; readonly body: Fields }

export function startTelegram() {
  const seen = { calls: [] as string[], sent: [] as SentMessage[], actions: [] as number[], files: [] as string[], offsets: [] as number[] }
  /** What to answer next, by method; `file` for a download. */
  const trouble: Record<string, Mishap[]> = {}
  const pending: { readonly update_id: number }[] = []
  const files = new Map<string, { readonly path: string; readonly bytes: Uint8Array; readonly size?: number }>()
  const ids = { update: 900, message: 10 }
  const state: { wake?: () => void; conflict?: () => void } = {}

  async function getUpdates({ offset, timeout = 0 }: Fields, signal: AbortSignal): Promise<Response> {
    state.conflict?.()
    if (typeof offset === 'number') {
      seen.offsets.push(offset)
      while (pending[0] && pending[0].update_id < offset) pending.shift()
    }
    if (pending.length === 0) {
      const other = await new Promise<'other' | 'over'>((resolve) => {
        const timer = setTimeout(() => resolve('over'), Number(timeout) * 1000)
        const over = () => {
          clearTimeout(timer)
          resolve('over')
        }
        state.wake = over
        state.conflict = () => {
          clearTimeout(timer)
          resolve('other')
        }
        signal.addEventListener('abort', over)
      })
      if (other === 'other')
        return refuse(409, 'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running')
    }
    delete state.conflict
    return done(pending.slice(0, 100))
  }

  function sendMessage(body: Fields): Response {
    const { chat_id: chat, text } = body
    if (typeof chat !== 'number') return refuse(400, 'Bad Request: chat_id is empty')
    if (typeof text !== 'string' || text.trim() === '') return refuse(400, 'Bad Request: message text is empty')
    if (text.length > 4096) return refuse(400, 'Bad Request: message is too long')
    if (chat === 404) return refuse(400, 'Bad Request: chat not found')
    seen.sent.push({ chat, text, body })
    ids.message += 1
    return done({ message_id: ids.message, date: 1, chat: { id: chat, type: 'private' }, text })
  }

  function getFile({ file_id: id }: Fields): Response {
    const file = files.get(String(id))
    if (!file) return refuse(400, 'Bad Request: invalid file_id')
    const { path, bytes, size = bytes.byteLength } = file
    return done({ file_id: id, file_unique_id: 'u', file_size: size, file_path: path })
  }

  async function handle(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url)
    if (pathname.startsWith(`/file/bot${TOKEN}/`)) {
      const path = pathname.slice(`/file/bot${TOKEN}/`.length)
      seen.files.push(path)
      const found = [...files.values()].find((file) => file.path === path)
      const mishap = trouble.file?.shift()
      if (mishap || !found) return new Response('Not Found', { status: mishap?.status ?? 404 })
      return new Response(Buffer.from(found.bytes))
    }
    const [, token, method = ''] = /^\/bot([^/]+)\/(\w+)$/.exec(pathname) ?? []
    if (token !== TOKEN) return refuse(401, 'Unauthorized')
    seen.calls.push(method)
    const body: Fields = Object(await request.json())
    const mishap = trouble[method]?.shift()
    const carryOut = () => answer(method, body, request.signal)
    if (mishap?.stage === 'after') await carryOut()
    if (mishap) return typeof mishap.body === 'string' ? new Response(mishap.body, mishap) : Response.json(mishap.body ?? {}, mishap)
    return await carryOut()
  }

  async function answer(method: string, body: Fields, signal: AbortSignal): Promise<Response> {
    if (method === 'getMe') return done(BOT)
    if (method === 'getUpdates') return getUpdates(body, signal)
    if (method === 'sendMessage') return sendMessage(body)
    if (method === 'getFile') return getFile(body)
    if (method !== 'sendChatAction') return refuse(404, 'Not Found')
    seen.actions.push(Number(body.chat_id))
    return done(true)
  }

  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', idleTimeout: 0, fetch: handle })

  return {
    api: `http://127.0.0.1:${server.port}`,
    seen,
    trouble,
    files,
    texts: (): string[] => seen.sent.map(({ text }) => text),
    pending: () => pending.length,
    /** A person says something; without a chat, in private. Entities are found as Telegram finds them. */
    say(given: string | Fields): void {
      const { from = ADA, chat, ...rest }: Fields = typeof given === 'string' ? { text: given } : given
      ids.update += 1
      ids.message += 1
      const own = { id: Number(Object(from).id), type: 'private' }
      const key = 'caption' in rest ? 'caption_entities' : 'entities'
      const found = entitiesIn(String(rest.text ?? rest.caption ?? ''))
      const message = { message_id: ids.message, date: 1, from, chat: chat ?? own, ...(found.length > 0 ? { [key]: found } : {}), ...rest }
      pending.push(Object.assign({ update_id: ids.update }, { message }))
      state.wake?.()
    },
    /** Any update. */
    push(update: Fields): void {
      ids.update += 1
      pending.push({ update_id: ids.update, ...update })
      state.wake?.()
    },
    [Symbol.dispose]: () => void server.stop(true),
  }
}

export type FakeTelegram = ReturnType<typeof startTelegram>

function done(result: unknown): Response {
  return Response.json({ ok: true, result })
}

function refuse(code: number, description: string): Response {
  return Response.json({ ok: false, error_code: code, description }, { status: code })
}

export const tooMany = (seconds: number): Mishap => ({
  status: 429,
  body: { ok: false, error_code: 429, description: `Too Many Requests: retry after ${seconds}`, parameters: { retry_after: seconds } },
})

function entitiesIn(text: string): Fields[] {
  return [...text.matchAll(/\/\w+(?:@\w+)?|@\w+/g)].map(({ 0: part, index: offset }) => ({
    type: part.startsWith('/') ? 'bot_command' : 'mention',
    offset,
    length: part.length,
  }))
}

/** Sizes of one photo, as Telegram lists them. */
export const photoOf = (fileId: string): Fields[] => [
  { file_id: `${fileId}-small`, file_unique_id: 's', width: 90, height: 60, file_size: 900 },
  { file_id: fileId, file_unique_id: 'l', width: 1280, height: 853, file_size: 90_000 },
]
