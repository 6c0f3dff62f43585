/** Shows the end of a run's log and follows it; older parts are loaded by range of bytes when they are asked for. */

import { memo } from 'preact/compat'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { ListedRun } from '../../../../control/contract/run-shapes.ts'
import { stream } from '../../net/api.ts'
import { pause } from '../../net/live.ts'
import { counted } from '../../parts/fields.tsx'
import { Button, Empty, Problem } from '../../parts/small.tsx'
import { attempt, textOf } from '../../state.ts'
import { queryOf, root } from '../net/plane-live.ts'
import { visibleLog } from '../parts/plain-text.tsx'

const chunk = 65_536
/** The control plane gives no more of a log in one answer, in bytes. */
const mostAtOnce = 1_048_576
/** The pause between two requests that returned nothing, in ms. */
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
    const from = () => endOf(now.current)
    void follow({ id: run_id, leaving: leaving.signal, isRunning: () => isRunning.current, from, add, failed: setProblem })
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
  if (problem !== undefined && !log) return <Problem>{problem}</Problem>
  if (!log) return <p class="quiet">Loading</p>
  if (log.bytes.length === 0 && log.from === 0) return <Empty>The log is empty so far.</Empty>
  return (
    <>
      <p class="row small quiet">
        {log.from > 0 && log.bytes.length < mostBytes && <Button word="Show earlier lines" kind="small" on={older} />}
        {log.from > 0 ? `From byte ${log.from.toLocaleString()}, ` : ''}
        {counted(endOf(log), 'byte')}
        {log_truncated && ' (the run wrote more; the log is full)'}
        <Button word="Download" kind="small" on={() => attempt(() => download(run_id))} />
      </p>
      <LogText of={log} label={`Log of ${run_id}`} />
    </>
  )
}

type LogFollowing = {
  readonly id: string
  readonly leaving: AbortSignal
  readonly isRunning: () => boolean
  readonly from: () => number
  readonly add: (at: number, bytes: Uint8Array) => void
  readonly failed: (why: string) => void
}

/** The server answers when there is more; it says so of a run that has ended at once. */
async function follow({ id, leaving, isRunning, from, add, failed }: LogFollowing): Promise<void> {
  for (let times = 0; !leaving.aborted; times += 1) {
    const begun = performance.now()
    const at = from()
    const waits = isRunning()
    try {
      const found = await bytesOf(id, { from: at, wait_ms: waits && times > 0 ? 20_000 : undefined, signal: leaving })
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

/** Scrolls with the log while the reader is at its end. */
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

type LogWindow = {
  /** The byte of the log at which `bytes` begin. */
  readonly from: number
  readonly bytes: Uint8Array
}

/** The text that begins at this byte of the log. */
type LogPiece = { readonly at: number; readonly text: string }

/** At most this many bytes are kept; of a very long log the end stays. */
const mostBytes = 1_048_576
const pieceBytes = 16_384
const newline = 10

const emptyWindow: LogWindow = { from: 0, bytes: new Uint8Array() }

function endOf({ from, bytes }: LogWindow): number {
  return from + bytes.length
}

/** Adds bytes behind the window, and drops what is too much at its beginning. Bytes that it has already change nothing. */
function appended(window: LogWindow, at: number, bytes: Uint8Array): LogWindow {
  const fresh = bytes.subarray(Math.max(0, endOf(window) - at))
  const joined = at > endOf(window) ? { from: at, bytes } : { from: window.from, bytes: joinedBytes(window.bytes, fresh) }
  const extra = Math.max(0, joined.bytes.length - mostBytes)
  return extra === 0 ? joined : { from: joined.from + extra, bytes: joined.bytes.slice(extra) }
}

/** Adds the bytes right before the window. */
function prepended(window: LogWindow, at: number, bytes: Uint8Array): LogWindow {
  const before = bytes.subarray(0, Math.max(0, window.from - at))
  return { from: at, bytes: joinedBytes(before, window.bytes) }
}

/** Pieces end after a line where they can; their borders stay the same while the log grows. */
function piecesOf({ from, bytes }: LogWindow): readonly LogPiece[] {
  const decoder = new TextDecoder()
  const pieces: LogPiece[] = []
  let at = startOfCharacter(bytes, 0)
  while (at < bytes.length) {
    const end = cutOf(bytes, at)
    pieces.push({ at: from + at, text: decoder.decode(bytes.subarray(at, end)) })
    at = end
  }
  return pieces
}

/** Returns the position after the first line that ends in the last half of the piece, counted from the start of the log. */
function cutOf(bytes: Uint8Array, at: number): number {
  const most = at + pieceBytes
  if (most >= bytes.length) return bytes.length
  const line = bytes.lastIndexOf(newline, most)
  return line > at ? line + 1 : startOfCharacter(bytes, most)
}

/** The window may begin within a character: the bytes that continue one are 10xxxxxx. */
function startOfCharacter(bytes: Uint8Array, wanted: number): number {
  let at = wanted
  while (at < bytes.length && at < wanted + 4 && ((bytes[at] ?? 0) & 0xc0) === 0x80) at += 1
  return at
}

function joinedBytes(first: Uint8Array, second: Uint8Array): Uint8Array {
  const joined = new Uint8Array(first.length + second.length)
  joined.set(first)
  joined.set(second, first.length)
  return joined
}
