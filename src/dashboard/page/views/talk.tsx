/** Answers "let me talk to it": a conversation as it streams, and a way to cancel the turn. */

import { useEffect, useRef, useState } from 'preact/hooks'
import { call, stream } from '../net/api.ts'
import { listen } from '../net/live.ts'
import { readEvents } from '../net/sse.ts'
import { Loaded, useLoaded } from '../parts/loaded.tsx'
import { Empty } from '../parts/small.tsx'
import { addEvent, type Piece, Pieces } from '../parts/turn.tsx'
import type { Conversation, ConversationSummary } from '../shapes.ts'
import { attempt, may, notice } from '../state.ts'
import { piecesOf } from './transcript.ts'

export function Talk({ rest }: { readonly rest: string }) {
  return (
    <>
      <h1>Talk</h1>
      <div class="talk">
        <Conversations current={rest} />
        <Conversing key={rest} id={rest} />
      </div>
    </>
  )
}

function Conversations({ current }: { readonly current: string }) {
  const list = useLoaded(
    () => call<{ conversations: readonly ConversationSummary[] }>('GET', '/conversations?limit=50'),
    'conversations',
    ({ event }) => /^(run_started|conversation_|memory_cleared)/.test(event.type),
  )
  return (
    <nav aria-label="Conversations">
      <p>
        <a class="button" href="#/talk">
          New conversation
        </a>
      </p>
      <Loaded from={list}>
        {({ conversations }) => (
          <ul class="list">
            {conversations.map(({ id, title }) => (
              <li key={id}>
                <a class="entry" href={`#/talk/${id}`} aria-current={id === current ? 'true' : undefined}>
                  {title || id}
                </a>
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </nav>
  )
}

function Conversing({ id }: { readonly id: string }) {
  const [pieces, setPieces] = useState<readonly Piece[]>([])
  const [running, setRunning] = useState<string | undefined>()
  const [problem, setProblem] = useState('')
  const end = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (id === '') return
    // What happens while the transcript loads waits for it: the transcript may have it already.
    let loaded = false
    const show = () =>
      call<Conversation>('GET', `/conversations/${encodeURIComponent(id)}`).then(
        (conversation) => {
          loaded = true
          setPieces(piecesOf(conversation))
          setRunning(conversation.running_run_id)
        },
        (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)),
      )
    void show()
    return listen(({ conversationId, runId, event }) => {
      if (conversationId !== id) return
      if (!loaded) return void show()
      setPieces((before) => addEvent(before, event))
      if (event.type === 'run_started') setRunning(runId)
      if (event.type === 'run_ended') setRunning(undefined)
    })
  }, [id])
  useEffect(() => end.current?.scrollIntoView({ block: 'nearest' }), [pieces])
  if (problem !== '') return <p class="card bad">{problem}</p>
  return (
    <section aria-label="Conversation">
      <div role="log" aria-label="What was said">
        {pieces.length === 0 && <Empty>Say something.</Empty>}
        <Pieces of={pieces} />
        <div ref={end} />
      </div>
      {may('chat') ? <Say id={id} running={running} /> : <Empty>Your token may not talk.</Empty>}
    </section>
  )
}

function Say({ id, running }: { readonly id: string; readonly running: string | undefined }) {
  const [text, setText] = useState('')
  async function send(): Promise<void> {
    const prompt = text.trim()
    if (prompt === '') return
    setText('')
    const sent = await attempt(() => begin(id, prompt))
    if (!sent) setText(prompt)
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      <label for="say">Message</label>
      <textarea
        id="say"
        rows={3}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
          event.preventDefault()
          void send()
        }}
      />
      <div class="row">
        <button type="submit" class="main">
          Send
        </button>
        {running !== undefined && (
          <button type="button" onClick={() => void attempt(() => call('POST', `/runs/${running}/cancel`, {}))}>
            Cancel the turn
          </button>
        )}
        <span class="quiet small">Enter sends, Shift and Enter begin a new line.</span>
      </div>
    </form>
  )
}

/** Begins a turn; it goes on when this page is closed. A new conversation is opened here as soon as it has an id. */
async function begin(id: string, prompt: string): Promise<void> {
  const response = await stream('POST', '/run', {
    body: { prompt, on_disconnect: 'continue', ...(id === '' ? {} : { conversation_id: id }) },
  })
  const conversation = response.headers.get('x-conversation-id')
  if (id === '' && conversation !== null) location.hash = `#/talk/${conversation}`
  // What is said arrives with the live events; here only the end of the turn is waited for.
  void (async () => {
    try {
      for await (const _ of readEvents(response));
    } catch {
      notice.value = { text: 'The connection was lost; the turn goes on.' }
    }
  })()
}
