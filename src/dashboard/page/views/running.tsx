/** Shows the turns that run now, with a way to cancel each. */

import { call } from '../net/api.ts'
import { Loaded, useLoaded } from '../parts/loaded.tsx'
import { Empty, Time } from '../parts/small.tsx'
import type { RunSummary } from '../shapes.ts'
import { attempt, may } from '../state.ts'
import { cancel } from './conversing.tsx'

export function RunningNow() {
  const runs = useLoaded(
    () => call<{ runs: readonly RunSummary[] }>('GET', '/runs?limit=50'),
    'running',
    ({ event }) => event.type === 'run_started' || event.type === 'run_ended',
  )
  return (
    <section aria-label="Running">
      <h2>Running</h2>
      <Loaded from={runs}>
        {({ runs: all }) => {
          const running = all.filter((run) => run.running)
          if (running.length === 0) return <Empty>No turn runs.</Empty>
          return running.map(({ id, conversation_id, started, channel, prompt }) => (
            <article class="card row spread" key={id}>
              <a href={`#/talk/${conversation_id}`}>{prompt || conversation_id}</a>
              <span class="row">
                <span class="quiet small">
                  {channel}, since <Time at={started} />
                </span>
                {may('chat') && (
                  <button type="button" class="small" onClick={() => void attempt(() => cancel(id))}>
                    Cancel
                  </button>
                )}
              </span>
            </article>
          ))
        }}
      </Loaded>
    </section>
  )
}
