/** Answers "what needs me": the open questions with their exact plan or difference, then what runs. */

import { Loaded, useAnswer } from '../parts/loaded.tsx'
import { Question, useMarkedQuestion } from '../parts/question.tsx'
import { Button, Empty, Facts, Time } from '../parts/small.tsx'
import type { RunSummary } from '../shapes.ts'
import { approvals, attempt, may, status } from '../state.ts'
import { cancel } from './talk.tsx'

export function Now() {
  const waiting = approvals.value
  const marked = useMarkedQuestion(() => approvals.value)
  return (
    <>
      <h1>Now</h1>
      <section aria-label="Waiting for you">
        {waiting.length === 0 ? (
          <Empty>Nothing waits for you.</Empty>
        ) : (
          may('approve') && (
            <p class="quiet small keys">
              <kbd>y</kbd> allows and <kbd>n</kbd> denies the marked question; <kbd>j</kbd> and <kbd>k</kbd> move the mark.
            </p>
          )
        )}
        {waiting.map((approval) => (
          <Question key={approval.id} approval={approval} marked={approval.id === marked} />
        ))}
      </section>
      <RunningNow />
      {status.value && (
        <section aria-label="This home">
          <h2>This home</h2>
          <Facts
            of={[
              ['Model', `${status.value.provider}/${status.value.model}`],
              ['Autonomy', status.value.autonomy],
              ['Workspace', status.value.workspace],
              ['Channels', status.value.channels.join(', ') || 'none'],
              ...status.value.troubles.map(({ channel, state, why }) => [channel, `${state}: ${why}`] as const),
              ['Receipts', String(status.value.receipts.count)],
              ['Version', status.value.version],
            ]}
          />
        </section>
      )}
    </>
  )
}

/** Shows the turns that run now, with a way to cancel each. */
function RunningNow() {
  const runs = useAnswer<{ runs: readonly RunSummary[] }>(
    '/runs?limit=50',
    ({ event }) => event.type === 'run_started' || event.type === 'run_ended',
  )
  return (
    <section aria-label="Running">
      <h2>Running</h2>
      <Loaded from={runs}>
        {({ runs: all }) => {
          const running = all.filter((run) => run.running)
          if (running.length === 0) return <Empty>No turn is running.</Empty>
          return running.map(({ id, conversation_id, started, channel, prompt }) => (
            <article class="card row spread" key={id}>
              <a href={`#/talk/${conversation_id}`}>{prompt || conversation_id}</a>
              <span class="row">
                <span class="quiet small">
                  {channel}, since <Time at={started} />
                </span>
                {may('chat') && <Button word="Cancel" kind="small" on={() => attempt(() => cancel(id))} />}
              </span>
            </article>
          ))
        }}
      </Loaded>
    </section>
  )
}
