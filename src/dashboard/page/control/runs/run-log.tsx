/** Shows the end of a run's log and follows it; older parts are loaded by range of bytes when they are asked for. */

import { memo } from 'preact/compat'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { ListedRun } from '../../../../control/contract/run-shapes.ts'
import { stream } from '../../net/api.ts'
import { pause } from '../../net/live.ts'
import { counted } from '../../parts/fields.tsx'
import { Empty } from '../../parts/small.tsx'
import { attempt, textOf } from '../../state.ts'
import { queryOf, root } from '../net/plane.ts'
import { visibleLog } from '../parts/plain-text.tsx'
import { appended, emptyWindow, endOf, type LogWindow, mostBytes, piecesOf, prepended } from './log-window.ts'

const chunk = 65_536
/** The control plane gives no more of a log in one answer, in bytes. */
const mostAtOnce = 1_048_576
/** Between two questions that found nothing, in ms. */
const restMs = 1_500

export function RunLog({ run: { run_id, log_bytes, log_truncated, state } }: { readonly run: ListedRun }) {
  const [log, setLog] = useState<LogWindow | undefined>(undefined)
  const [problem, setProblem] = useState<string | undefined>(undefined)
  const now = useRef<LogWindow>(emptyWindow)
  const keep = (next: LogWindow) => {
    now.current = next
    setLog(next)
  }
  const isRunning = useRef(state === 'running')
  isRunning.current = state === 'running'
  useEffect(() => {
    const leaving = new AbortController()
    now.current = { from: Math.max(0, log_bytes - chunk), bytes: new Uint8Array() }
    void follow({
      id: run_id,
      leaving: leaving.signal,
      isRunning: () => isRunning.current,
      from: () => endOf(now.current),
      add,
      failed: setProblem,
    })
    return () => leaving.abort()
  }, [run_id])
  function add(at: number, bytes: Uint8Array): void {
    keep(appended(now.current, at, bytes))
    setProblem(undefined)
  }
  const older = () =>
    void attempt(async () => {
      const { from } = now.current
      const start = Math.max(0, from - chunk)
      const found = await bytesOf(run_id, { from: start, to: from })
      keep(prepended(now.current, start, found))
    })
  if (problem !== undefined && !log)
    return (
      <p class="card bad" role="alert">
        {problem}
      </p>
    )
  if (!log) return <p class="quiet">Loading</p>
  if (log.bytes.length === 0 && log.from === 0) return <Empty>Nothing was written yet.</Empty>
  return (
    <>
      <p class="row small quiet">
        {log.from > 0 && log.bytes.length < mostBytes && (
          <button type="button" class="small" onClick={older}>
            Show what comes before
          </button>
        )}
        {log.from > 0 ? `From byte ${log.from.toLocaleString()}, ` : ''}
        {counted(endOf(log), 'byte')}
        {log_truncated && ' (the run wrote more; the log is full)'}
        <button type="button" class="small" onClick={() => void attempt(() => download(run_id))}>
          Download
        </button>
      </p>
      <LogText of={log} label={`Log of ${run_id}`} />
    </>
  )
}

type Following = {
  readonly id: string
  readonly leaving: AbortSignal
  readonly isRunning: () => boolean
  readonly from: () => number
  readonly add: (at: number, bytes: Uint8Array) => void
  readonly failed: (why: string) => void
}

/** The server answers when there is more; it says so of a run that has ended at once. */
async function follow({ id, leaving, isRunning, from, add, failed }: Following): Promise<void> {
  for (let times = 0; !leaving.aborted; times += 1) {
    const begun = performance.now()
    const at = from()
    const waits = isRunning()
    try {
      const found = await bytesOf(id, { from: at, ...(waits && times > 0 ? { wait_ms: 20_000 } : {}), signal: leaving })
      if (leaving.aborted) return
      add(at, found)
      if (!waits && found.length < mostAtOnce) return
      if (found.length === 0 && times > 0) await pause(Math.max(0, begun + restMs - performance.now()), leaving)
    } catch (error) {
      if (leaving.aborted) return
      failed(textOf(error))
      await pause(restMs, leaving)
    }
  }
}

type Part = { readonly from: number; readonly to?: number; readonly wait_ms?: number; readonly signal?: AbortSignal }

async function bytesOf(id: string, { signal, ...part }: Part): Promise<Uint8Array<ArrayBuffer>> {
  const response = await stream('GET', `${root}/runs/${id}/log${queryOf(part)}`, signal ? { signal } : {})
  return new Uint8Array(await response.arrayBuffer())
}

async function download(id: string): Promise<void> {
  const parts: Uint8Array<ArrayBuffer>[] = []
  for (let from = 0; ; ) {
    const part = await bytesOf(id, { from })
    parts.push(part)
    from += part.length
    if (part.length < mostAtOnce) break
  }
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob(parts, { type: 'application/octet-stream' }))
  link.download = `${id}.log`
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}

/** Stays at the end while its reader is at the end. */
function LogText({ of, label }: { readonly of: LogWindow; readonly label: string }) {
  const box = useRef<HTMLElement>(null)
  const atEnd = useRef(true)
  const end = endOf(of)
  useLayoutEffect(() => {
    const at = box.current
    if (at && atEnd.current) at.scrollTop = at.scrollHeight
  }, [end])
  return (
    <section
      ref={box}
      class="log"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls by itself, so the keyboard must reach it.
      tabIndex={0}
      aria-label={label}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        atEnd.current = scrollTop + clientHeight >= scrollHeight - 40
      }}
    >
      {piecesOf(of).map(({ at, text }) => (
        <Piece key={at} text={text} />
      ))}
    </section>
  )
}

const Piece = memo(({ text }: { readonly text: string }) => <pre>{visibleLog(text)}</pre>)
