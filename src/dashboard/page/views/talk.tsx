/** Answers "let me talk to it": the conversations, and the one that is open. */

import { call } from '../net/api.ts'
import { Loaded, useLoaded } from '../parts/loaded.tsx'
import { Empty } from '../parts/small.tsx'
import type { ConversationSummary } from '../shapes.ts'
import { may } from '../state.ts'
import { Conversing } from './conversing.tsx'

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
  const list = useLoaded(
    () => call<{ readonly conversations: readonly ConversationSummary[]; readonly next?: number }>('GET', '/conversations?limit=100'),
    'conversations',
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
            {next !== undefined && <p class="quiet small">Older ones are found by search.</p>}
          </>
        )}
      </Loaded>
    </nav>
  )
}
