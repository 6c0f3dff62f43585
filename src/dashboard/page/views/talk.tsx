/** Answers "let me talk to it": the conversations, and the one that is open. */

import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, call, stream } from '../net/api.ts'
import { type Live, listen } from '../net/live.ts'
import { submitBy } from '../parts/fields.tsx'
import { Loaded, useAnswer } from '../parts/loaded.tsx'
import { keysOn } from '../parts/mark.ts'
import { Question, useMarkedQuestion } from '../parts/question.tsx'
import { Button, Empty, Submit, Time } from '../parts/small.tsx'
import { type CallShown, type Piece, Pieces } from '../parts/turn.tsx'
import type { Conversation, ConversationSummary, Job, Message, RunSummary } from '../shapes.ts'
import { approvals, attempt, may, textOf } from '../state.ts'

export function Talk({ rest }: { readonly rest: string }) {
  return (
    <>
      <h1>Talk</h1>
      <div class={rest === '' ? 'talk' : 'talk inside'}>
        <Conversations current={rest} />
        <Conversing key={rest} id={rest} />
      </div>
    </>
  )
}

function Conversations({ current }: { readonly current: string }) {
  const list = useAnswer<{ readonly conversations: readonly ConversationSummary[]; readonly next?: number }>(
    '/conversations?limit=100',
    ({ event }) => /^(run_started|run_ended|conversation_|memory_cleared)/.test(event.type),
  )
  return (
    <nav aria-label="Conversations">
      {may('chat') && (
        <a class="button new" href="#/talk" aria-current={current === '' ? 'true' : undefined}>
          New conversation
        </a>
      )}
      <Loaded from={list}>
        {({ conversations, next }) => (
          <>
            {conversations.length === 0 && <Empty>No conversations yet.</Empty>}
            <ul class="list">
              {conversations.map(({ id, title }) => (
                <li key={id}>
                  <a class="entry" href={`#/talk/${id}`} aria-current={id === current ? 'true' : undefined} title={title}>
                    {title || id}
                  </a>
                </li>
              ))}
            </ul>
            {next !== undefined && <p class="quiet small">Use the search to find older ones.</p>}
          </>
        )}
      </Loaded>
    </nav>
  )
}

/** Shows one conversation as it streams, with the questions that it waits for, and takes what is said. */
function Conversing({ id }: { readonly id: string }) {
  const { title, pieces, running, problem, again } = useConversation(id)
  const asked = approvals.value.filter(({ conversation_id }) => conversation_id === id)
  const marked = useMarkedQuestion(() => approvals.value.filter(({ conversation_id }) => conversation_id === id))
  useFocusOn(asked[0]?.id)
  const end = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (pieces.length > 0 && isAtEnd()) end.current?.scrollIntoView({ block: 'end' })
  }, [pieces, asked.length])
  if (problem !== '')
    return (
      <div class="card bad" role="alert">
        <p>{problem}</p>
        <Button word="Retry" on={again} />
      </div>
    )
  const last = pieces.findLast(({ kind }) => kind === 'user')
  const isRetried = running === undefined && pieces.at(-1)?.kind === 'problem' && last?.kind === 'user' && may('chat')
  return (
    <section aria-label="Conversation" class="conversing">
      {id !== '' && <Head id={id} title={title} />}
      <div role="log" aria-label="What was said">
        {id === '' && <Empty>Write a message to begin a new conversation.</Empty>}
        <Pieces of={pieces} />
        {asked.map((approval) => (
          <Question key={approval.id} approval={approval} marked={approval.id === marked} />
        ))}
        {isRetried && <Button word="Retry" on={() => attempt(() => begin(id, last.text))} />}
      </div>
      {id !== '' && <Background id={id} />}
      {may('chat') ? <Say id={id} running={running} /> : <Empty>Your token may not talk.</Empty>}
      <div ref={end} />
    </section>
  )
}

/** Shows the commands that still run in the background. */
function Background({ id }: { readonly id: string }) {
  const { value, again } = useAnswer<{ readonly jobs: readonly Job[] }>(
    `/conversations/${id}/jobs`,
    ({ event, conversationId }) => conversationId === id && /^(tool_result|run_ended)$/.test(event.type),
  )
  const running = value?.jobs.filter(({ state }) => state === 'running') ?? []
  if (running.length === 0) return null
  const stop = (job: string) => attempt(() => call('POST', `/conversations/${id}/jobs/${job}/stop`)).then(again)
  return (
    <section class="card" aria-label="In the background">
      <ul class="list">
        {running.map((job) => (
          <li class="row" key={job.id}>
            <code class="grow">{job.command}</code>
            <span class="quiet small">
              in the background since <Time at={job.started} />
            </span>
            {may('chat') && <Button word="Stop" kind="small" on={() => stop(job.id)} />}
          </li>
        ))}
      </ul>
    </section>
  )
}

/**
 * Brings a question that opens into view, and gives it the keys unless the person has begun to write; when it is answered, the focus goes
 * back.
 */
function useFocusOn(id: string | undefined): void {
  useEffect(() => {
    const card = id === undefined ? null : document.querySelector<HTMLElement>(`[data-mark="${CSS.escape(id)}"]`)
    if (card === null) return
    const before = document.activeElement
    const isWriting = before instanceof HTMLTextAreaElement && before.value.trim() !== ''
    if (!isWriting && keysOn.value) card.focus({ preventScroll: true })
    const field = document.querySelector<HTMLElement>('.say')
    const { style } = document.documentElement
    const watch = new ResizeObserver(() => {
      // The field covers the end of the page. Of a question that is taller than the rest, its buttons matter most.
      style.scrollPaddingBottom = `${(field?.offsetHeight ?? 0) + 16}px`
      for (const part of [card, card.querySelector('.main')]) part?.scrollIntoView({ block: 'nearest' })
    })
    // The question grows when its difference arrives, what stands above it when a late event does, and the field with what is attached.
    for (const part of [card, card.parentElement, field]) if (part !== null) watch.observe(part)
    return () => {
      watch.disconnect()
      style.scrollPaddingBottom = ''
      if (document.activeElement !== document.body && !card.contains(document.activeElement)) return
      // The first message of a conversation was written in a field that is not there any more.
      const isThere = before instanceof HTMLElement && before !== document.body && before.isConnected
      const back = isThere ? before : document.getElementById('say')
      back?.focus({ preventScroll: true })
    }
  }, [id])
}

/** Tells whether the page is scrolled to its end; otherwise the person reads further up, and the page must not scroll. */
function isAtEnd(): boolean {
  return document.documentElement.scrollHeight - window.innerHeight - window.scrollY < 400
}

type ConversationView = {
  readonly title: string
  readonly pieces: readonly Piece[]
  /** The run that is under way. */
  readonly running?: string | undefined
  readonly problem: string
}

/** `again` loads it once more. */
function useConversation(id: string): ConversationView & { readonly again: () => void } {
  const [turn, setTurn] = useState(0)
  const [shown, setShown] = useState<ConversationView>({ title: '', pieces: [], problem: '' })
  useEffect(() => {
    if (id === '') return
    // Undefined until it is loaded: what happens meanwhile is kept, and added if the loaded part does not have it.
    const state: { seq?: number; held: Live[]; gone: boolean } = { held: [], gone: false }
    const add = (live: Live) => {
      if (live.seq === undefined || live.seq > (state.seq ?? 0)) setShown((before) => advanced(before, live))
    }
    const load = async () => {
      const [conversation, { runs }] = await Promise.all([
        call<Conversation>('GET', `/conversations/${id}`),
        call<{ runs: readonly RunSummary[] }>('GET', `/runs?conversation_id=${id}&limit=500`),
      ])
      if (state.gone) return
      state.seq = conversation.seq
      const { title, running_run_id: running } = conversation
      setShown({ title, pieces: piecesOf(conversation, runs), running, problem: '' })
      for (const live of state.held) add(live)
    }
    load().catch((error: unknown) => setShown((before) => ({ ...before, problem: textOf(error) })))
    const end = listen((live) => {
      if (live.event.type === 'memory_cleared') return setShown({ title: '', pieces: [], problem: 'All conversations were deleted.' })
      if (live.conversationId !== id) return
      if (state.seq === undefined) state.held.push(live)
      else add(live)
    })
    return () => {
      state.gone = true
      end()
    }
  }, [id, turn])
  return { ...shown, again: () => setTurn((now) => now + 1) }
}

function advanced(before: ConversationView, live: Live): ConversationView {
  const { event, runId } = live
  if (event.type === 'conversation_renamed') return { ...before, title: event.title }
  if (event.type === 'conversation_deleted') return { ...before, pieces: [], problem: 'This conversation was deleted.' }
  const running = event.type === 'run_started' ? runId : event.type === 'run_ended' ? undefined : before.running
  return { ...before, pieces: addEvent(before.pieces, live), running }
}

function Head({ id, title }: { readonly id: string; readonly title: string }) {
  const [draft, setDraft] = useState<string | undefined>()
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.select(), [draft === undefined])
  if (draft !== undefined)
    return (
      <form
        class="row head"
        onSubmit={submitBy(() =>
          attempt(() => call('PATCH', `/conversations/${id}`, { title: draft })).then((done) => done && setDraft(undefined)),
        )}
      >
        <input
          ref={field}
          class="grow"
          aria-label="Title"
          required
          maxLength={200}
          value={draft}
          onInput={(event) => setDraft(event.currentTarget.value)}
        />
        <Submit>Rename</Submit>
        <Button word="Back" on={() => setDraft(undefined)} />
      </form>
    )
  return (
    <div class="row head">
      <h2 class="grow">{title}</h2>
      <a href={`#/runs/${id}`}>Runs</a>
      {may('chat') && (
        <>
          <Button word="Rename" kind="small" on={() => setDraft(title)} />
          <Button word="Delete" kind="small" on={() => remove(id, title)} />
        </>
      )}
    </div>
  )
}

async function remove(id: string, title: string): Promise<void> {
  if (!confirm(`Delete "${title}" with its runs? Its receipts stay.`)) return
  if (await attempt(() => call('DELETE', `/conversations/${id}`))) location.hash = '#/talk'
}

function Say({ id, running }: { readonly id: string; readonly running: string | undefined }) {
  const [text, setText] = useState('')
  const [images, setImages] = useState<readonly string[]>([])
  const [waiting, setWaiting] = useState(0)
  const attach = async (files: FileList | null | undefined) => {
    const urls = await Promise.all([...(files ?? [])].filter(({ type }) => type.startsWith('image/')).map(dataUrl))
    setImages((now) => [...now, ...urls].slice(0, 20))
  }
  async function send(): Promise<void> {
    const prompt = text.trim()
    if (prompt === '') return
    setText('')
    setImages([])
    setWaiting((now) => now + 1)
    const sent = await attempt(() => begin(id, prompt, images))
    setWaiting((now) => now - 1)
    // What could not be sent is not lost.
    if (!sent) setText((now) => (now === '' ? prompt : `${prompt}\n${now}`))
    if (!sent) setImages((now) => [...images, ...now].slice(0, 20))
  }
  return (
    <form class="say" onSubmit={submitBy(send)}>
      <label for="say" class="hidden">
        Message
      </label>
      <textarea
        id="say"
        rows={3}
        placeholder="Message"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onPaste={(event) => {
          if (!event.clipboardData?.files.length) return
          event.preventDefault()
          void attach(event.clipboardData.files)
        }}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
          event.preventDefault()
          void send()
        }}
      />
      <div class="row">
        <Submit>Send</Submit>
        {running !== undefined && <Button word="Cancel the turn" on={() => attempt(() => cancel(running))} />}
        <Attached count={images.length} attach={attach} clear={() => setImages([])} />
        <span class="quiet small" role="status">
          {waiting > 0 && running !== undefined ? 'Your message waits for the previous turn.' : running === undefined ? '' : 'Working'}
        </span>
        <span class="quiet small keys">Enter sends, Shift+Enter begins a new line.</span>
      </div>
    </form>
  )
}

type Attaching = { readonly count: number; readonly attach: (files: FileList | null) => Promise<void>; readonly clear: () => void }

function Attached({ count, attach, clear }: Attaching) {
  return (
    <>
      <input
        type="file"
        aria-label="Attach pictures"
        class="small"
        accept="image/png,image/jpeg,image/webp,image/gif"
        multiple
        onChange={({ currentTarget }) => void attach(currentTarget.files).then(() => Object.assign(currentTarget, { value: '' }))}
      />
      {count > 0 && <Button word={`Remove ${count} attached`} on={clear} />}
    </>
  )
}

/** Reads a file of the person as a data: URL; the server checks and scales it. */
function dataUrl(file: File): Promise<string> {
  const reader = new FileReader()
  return new Promise((resolve, reject) => {
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(file)
  })
}

/** Cancels a run; one that has ended meanwhile is left alone. */
export async function cancel(runId: string): Promise<void> {
  await call('POST', `/runs/${runId}/cancel`, {}).catch((error: unknown) => {
    if (!(error instanceof ApiError && error.code === 'no_run')) throw error
  })
}

/**
 * Begins a turn, which continues when this page is closed. Its text arrives with the live events, so the answer itself is not read: a browser
 * has only a few connections to one server.
 */
async function begin(id: string, prompt: string, images: readonly string[] = []): Promise<void> {
  const enough = new AbortController()
  const body = {
    prompt,
    ...(images.length > 0 ? { images } : {}),
    on_disconnect: 'continue',
    on_approval: 'wait',
    ...(id === '' ? {} : { conversation_id: id }),
  }
  const response = await stream('POST', '/run', { body, signal: enough.signal })
  const conversation = response.headers.get('x-conversation-id')
  enough.abort()
  if (id === '' && conversation !== null) location.hash = `#/talk/${conversation}`
}

/**
 * Keeps what a conversation shows: what is stored of it, and each live event added to that. `runs` say how each turn ended; the messages
 * do not.
 */
function piecesOf({ messages }: Conversation, runs: readonly RunSummary[]): readonly Piece[] {
  const results = new Map(messages.flatMap(resultsOf))
  return messages.flatMap((message, at): Piece[] => {
    const run = message.metadata?.run_id
    const isLast = run !== undefined && messages.slice(at + 1).every(({ metadata }) => metadata?.run_id !== run)
    const ended = isLast ? runs.find(({ id }) => id === run) : undefined
    return [...said(message, results), ...(ended?.code === undefined ? [] : endOf({ code: ended.code, message: ended.message ?? '' }))]
  })
}

type Result = { readonly status: string; readonly output: string }

function resultsOf({ content, tool_results }: Message): [string, Result][] {
  return (tool_results ?? []).map(({ call_id, status }) => [call_id, { status, output: content }])
}

function said({ role, content, tool_calls }: Message, results: ReadonlyMap<string, Result>): Piece[] {
  if (role === 'tool') return []
  const text: Piece[] = content === '' ? [] : [{ kind: role === 'user' ? 'user' : 'text', text: content }]
  const calls = (tool_calls ?? []).map(({ id, name, input }): Piece => {
    return { kind: 'call', call: { id, tool: name, input, ...results.get(id) } }
  })
  return [...text, ...calls]
}

/** Numbered text is the whole of what streamed before it. */
function addEvent(pieces: readonly Piece[], { id, event }: Live): readonly Piece[] {
  switch (event.type) {
    case 'run_started':
      return [...settled(pieces), { kind: 'user', text: event.message }]
    case 'text':
    case 'thinking':
      return id === undefined ? streamed(pieces, event.type, event.content) : whole(pieces, event.type, event.content)
    case 'tool_use':
      return [...settled(pieces), { kind: 'call', call: { id: event.toolCallId, tool: event.toolName, input: event.input } }]
    case 'tool_result':
      return pieces.map((piece) =>
        piece.kind === 'call' && piece.call.id === event.toolCallId
          ? { kind: 'call', call: { ...piece.call, ...outcomeOf(event) } }
          : piece,
      )
    case 'run_ended':
      return [...settled(pieces), ...endOf(event)]
    default:
      return pieces
  }
}

function streamed(pieces: readonly Piece[], kind: 'text' | 'thinking', text: string): readonly Piece[] {
  const last = pieces.at(-1)
  if (last?.kind === kind && last.partial) return [...pieces.slice(0, -1), { kind, text: last.text + text, partial: true }]
  return [...pieces, { kind, text, partial: true }]
}

function whole(pieces: readonly Piece[], kind: 'text' | 'thinking', text: string): readonly Piece[] {
  const isStream = (piece: Piece) => piece.kind === kind && piece.partial === true
  const at = pieces.findIndex(isStream)
  const kept = pieces.filter((piece) => !isStream(piece))
  return text === '' ? kept : kept.toSpliced(at < 0 ? kept.length : at, 0, { kind, text })
}

function settled(pieces: readonly Piece[]): readonly Piece[] {
  return pieces.map((piece) => ('partial' in piece ? { kind: piece.kind, text: piece.text } : piece))
}

function outcomeOf({ status, output }: Extract<Live['event'], { type: 'tool_result' }>): Pick<CallShown, 'status' | 'output'> {
  if (output === undefined) return { status }
  return { status, output: typeof output === 'string' ? output : JSON.stringify(output, null, 2) }
}

/** Returns how a turn ended; nothing when it was answered. */
function endOf({ code, message }: { readonly code: string; readonly message: string }): readonly Piece[] {
  return code === 'answered' ? [] : [{ kind: 'problem', text: `The turn ended (${code})${message === '' ? '' : `: ${message}`}` }]
}
