/** Answers "what did it do": the runs, newest first, each with its transcript. */

import { useState } from 'preact/hooks'
import { call } from '../net/api.ts'
import { Loaded, useLoaded } from '../parts/loaded.tsx'
import { Button, Empty, Time } from '../parts/small.tsx'
import type { RunSummary } from '../shapes.ts'
import { attempt } from '../state.ts'
import { Ended, RunView } from './run.tsx'

/** `rest` is empty, the id of a run, or that of a conversation whose runs are shown. */
export function Runs({ rest }: { readonly rest: string }) {
  return (
    <>
      <h1>Runs</h1>
      {rest.startsWith('run_') ? <RunView key={rest} id={rest} /> : <RunList key={rest} conversation={rest} />}
    </>
  )
}

type Page = { readonly runs: readonly RunSummary[]; readonly next?: string }

function RunList({ conversation }: { readonly conversation: string }) {
  const filter = conversation === '' ? '' : `&conversation_id=${conversation}`
  const [older, setOlder] = useState<Page>({ runs: [] })
  const newest = useLoaded(
    () => call<Page>('GET', `/runs?limit=30${filter}`),
    conversation,
    ({ event }) => /^(run_|conversation_deleted|memory_cleared)/.test(event.type),
  )
  const more = (before: string) =>
    void attempt(async () => {
      const page = await call<Page>('GET', `/runs?limit=30${filter}&before=${before}`)
      setOlder((known) => ({ ...page, runs: [...known.runs, ...page.runs] }))
    })
  return (
    <>
      {conversation !== '' && (
        <p class="small">
          Only those of <a href={`#/talk/${conversation}`}>one conversation</a>. <a href="#/runs">Show all</a>
        </p>
      )}
      <Loaded from={newest}>
        {(page) => {
          const known = new Set(page.runs.map(({ id }) => id))
          const runs = [...page.runs, ...older.runs.filter(({ id }) => !known.has(id))]
          const next = older.runs.length === 0 ? page.next : older.next
          if (runs.length === 0) return <Empty>Nothing ran yet.</Empty>
          return (
            <>
              <ul class="list runs">
                {runs.map((run) => (
                  <Line key={run.id} run={run} />
                ))}
              </ul>
              {next !== undefined && <Button on={() => more(next)}>Older runs</Button>}
            </>
          )
        }}
      </Loaded>
    </>
  )
}

function Line({ run: { id, prompt, started, channel, model, running, code } }: { readonly run: RunSummary }) {
  return (
    <li>
      <a class="entry row spread" href={`#/runs/${id}`}>
        <span class="grow clip">{prompt || id}</span>
        <span class="row small">
          <Ended running={running} code={code} />
          <span class="quiet">
            {channel}, {model}
          </span>
          <span class="quiet">
            <Time at={started} />
          </span>
        </span>
      </a>
    </li>
  )
}
