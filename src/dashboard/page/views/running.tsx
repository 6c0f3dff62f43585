/** Shows the turns that run now, with a way to cancel each. */

import { call } from '../net/api.ts'
import { Loaded, useLoaded } from '../parts/loaded.tsx'
import { Empty, Time } from '../parts/small.tsx'
import type { RunSummary } from '../shapes.ts'
import { attempt, may } from '../state.ts'

export function RunningNow() {
  const runs = useLoaded(
    () => call<{ runs: readonly RunSummary[] }>('GET', '/runs?limit=50'),
    'running',
    ({ event }) => event.type.startsWith('run_'),
  )
  return (
    <section aria-label="Running">
      <h2>Running</h2>
      <Loaded from={runs}>
        {({ runs: all }) => {
          const running = all.filter(({ ended }) => ended === undefined)
          if (running.length === 0) return <Empty>No turn runs.</Empty>
          return running.map(({ id, conversation_id, started, channel, message }) => (
            <article class="card" key={id}>
              <div class="row spread">
                <a href={`#/talk/${conversation_id}`}>{message || conversation_id}</a>
                <span class="quiet small">
                  {channel}, since <Time at={started} />
                </span>
              </div>
              {may('chat') && (
                <button type="button" onClick={() => void attempt(() => call('POST', `/runs/${id}/cancel`, {}))}>
                  Cancel
                </button>
              )}
            </article>
          ))
        }}
      </Loaded>
    </section>
  )
}
