/** Runs us in the background where no service manager does: a shell starts the server again when it fails, and a note says who runs. */

import { mkdirSync, openSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { isObject, parseJson } from '../../kit/json.ts'
import { textIn } from '../../kit/proc.ts'
import { endGroup } from '../supervise.ts'
import { type ServiceManager, type ServiceRun, type ServiceState, stopSeconds, writeUnit } from './service-run.ts'

/** The operations on processes that the caller passes in. */
export type Processes = {
  /** Identifies a process by pid and start time. */
  ownerOf(pid: number): string
  isAlive(owner: string): boolean
  /** Undefined when another process holds the lock for `waitMs`. */
  takeLock(path: string, waitMs: number): Disposable | undefined
  readonly sleep: (ms: number) => Promise<unknown>
}

export type BackgroundOptions = {
  /** A folder that belongs to the user; it is made when absent. */
  readonly folder: string
  readonly logPath: string
  readonly processes: Processes
  readonly now: () => number
}

/**
 * Starts "$@" again when it fails, after 1, 2, 4 … 60 s; after a steady minute after 1 s again. It ends when the server ends well, when
 * starting again would not help (a wrong command line, an altered record), and on SIGTERM, which it passes on. $1 is the file of the count
 * of restarts. The server does not outlive it.
 */
const keeper = `
count=$1; shift; wait=1; n=0; leaving= with=
command -v setpriv >/dev/null && with='setpriv --pdeathsig TERM'
trap 'leaving=1; [ -n "$child" ] && kill -TERM "$child"' TERM INT HUP
while :; do
  began=$(date +%s)
  $with "$@" & child=$!
  while wait "$child"; code=$?; kill -0 "$child" 2>/dev/null; do :; done
  [ -n "$leaving" ] && exit 0
  case $code in 0 | 2 | 9 | 130) exit "$code" ;; esac
  [ $(($(date +%s) - began)) -ge 60 ] && wait=1
  n=$((n + 1)); echo "$n $code" >"$count"
  echo "warn: the server ended with exit code $code; it starts again in $wait s" >&2
  sleep "$wait" & child=$!; wait "$child"; [ -n "$leaving" ] && exit 0
  wait=$((wait * 2)); [ "$wait" -gt 60 ] && wait=60
done
`

type ServiceNote = { readonly run?: ServiceRun; readonly keeper?: string; readonly since?: number }

export function backgroundManager({ folder, logPath, processes, now }: BackgroundOptions): ServiceManager {
  const [file, lockPath, countPath] = [`${folder}/service.json`, `${folder}/service.lock`, `${folder}/service.restarts`]
  const write = (note: ServiceNote) => writeUnit(file, `${JSON.stringify(note, null, 2)}\n`)
  const pidOf = ({ keeper: owner }: ServiceNote) =>
    owner !== undefined && processes.isAlive(owner) ? Number(owner.split('@')[0]) : undefined

  /** One starts or stops at a time. */
  async function alone<T>(step: () => Promise<T>): Promise<T> {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    using lock = processes.takeLock(lockPath, 2_000)
    if (!lock) throw new Error(`another process starts or stops the service now (${lockPath}); try again`)
    return await step()
  }

  async function start(): Promise<void> {
    const note = readNote(file)
    if (!note.run) throw new Error('the service is not installed; run "braidclaw service install"')
    if (pidOf(note) !== undefined) throw new Error(`it runs already (pid ${pidOf(note)}); "service restart" starts it again`)
    rmSync(countPath, { force: true })
    mkdirSync(dirname(logPath), { recursive: true, mode: 0o700 })
    // Receives the output of a crash; the server itself writes its log.
    const crash = openSync(`${logPath}.crash`, 'w', 0o600)
    const { argv, env, folder: cwd } = note.run
    const child = Bun.spawn(['/bin/sh', '-c', keeper, 'braidclaw-keeper', countPath, ...argv], {
      cwd,
      env: { ...env },
      stdio: ['ignore', crash, crash],
      detached: true,
    })
    child.unref()
    write({ run: note.run, keeper: processes.ownerOf(child.pid), since: now() })
  }

  async function stop(): Promise<void> {
    const note = readNote(file)
    const pid = pidOf(note)
    if (pid === undefined) throw new Error('it does not run')
    process.kill(pid, 'SIGTERM')
    for (let waited = 0; pidOf(note) !== undefined && waited < stopSeconds * 1_000; waited += 50) await processes.sleep(50)
    endGroup(pid, 'SIGKILL')
    write({ run: note.run })
  }

  return {
    kind: 'background',
    file,
    text: (run) => `${JSON.stringify({ run }, null, 2)}\n`,
    argv: () => readNote(file).run?.argv,
    install: (run) => alone(async () => write({ ...readNote(file), run })),
    start: () => alone(start),
    stop: () => alone(stop),
    uninstall: () =>
      alone(async () => {
        if (pidOf(readNote(file)) !== undefined) await stop()
        for (const path of [file, countPath]) rmSync(path, { force: true })
      }),
    async state() {
      const note = readNote(file)
      return stateOf(note, pidOf(note), countIn(countPath))
    },
    log: () => ({ path: logPath }),
  }
}

function stateOf(note: ServiceNote, pid: number | undefined, { restarts, code }: RestartCount): ServiceState {
  const ended = note.keeper !== undefined && pid === undefined
  return {
    installed: note.run !== undefined,
    running: pid !== undefined,
    pid,
    since: pid === undefined ? undefined : note.since,
    restarts: restarts > 0 ? restarts : undefined,
    problem: ended ? `it ended by itself${code === undefined ? '' : `, last with exit code ${code}`}; see "service logs"` : undefined,
  }
}

type RestartCount = { readonly restarts: number; readonly code?: number }

function countIn(path: string): RestartCount {
  const [restarts, code] = textIn(path).split(' ').map(Number)
  return { restarts: restarts || 0, code }
}

/** A missing or malformed note means: not installed. */
function readNote(path: string): ServiceNote {
  const note = parseJson(textIn(path))
  if (!isObject(note)) return {}
  const { run, keeper: owner, since } = note
  return {
    run: isRun(run) ? run : undefined,
    keeper: typeof owner === 'string' ? owner : undefined,
    since: typeof since === 'number' ? since : undefined,
  }
}

function isRun(value: unknown): value is ServiceRun {
  if (!isObject(value)) return false
  const { argv, env, folder, logPath } = value
  return Array.isArray(argv) && argv.length > 0 && isObject(env) && typeof folder === 'string' && typeof logPath === 'string'
}
