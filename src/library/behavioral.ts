/** Describes behavioral programs with a context and public events: `import { useBehavioral } from 'braidclaw/behavioral'`, on Bun and Node. */

import {
  type Behavioral,
  type BehavioralOptions,
  behavioral,
  type Disconnect,
  type Handlers,
  joined,
  type Trigger,
} from './behavioral/b-program.ts'
import { asEvent, type BPEvent, bSync, bThread, type EventDetails, maybe } from './behavioral/b-thread.ts'

export type {
  Behavioral,
  BehavioralOptions,
  BThreads,
  Disconnect,
  Handlers,
  SelectionBid,
  SnapshotMessage,
  Trigger,
} from './behavioral/b-program.ts'
export { behavioral } from './behavioral/b-program.ts'
export type { BPEvent, BPListener, EventDetails, EventPattern, Idioms, Repeat, RulesFunction } from './behavioral/b-thread.ts'
export { bSync, bThread } from './behavioral/b-thread.ts'
export { type Frontier, frontier, type Program, type ProgramReport, type ProgramStep, verify } from './behavioral/check.ts'

type ProgramTools<D extends EventDetails, Output> = Pick<Behavioral<D>, 'bThreads' | 'useSnapshot'> & {
  readonly bSync: typeof bSync<D>
  readonly bThread: typeof bThread<D>
  readonly trigger: Trigger<D> & { addDisconnectCallback(callback: Disconnect): void }
  readonly disconnect: Disconnect
  /** Passes an output to the listeners of `onEmit`, unless the context has an `emit` of its own. */
  readonly emit: (output: Output) => void
}

/** @throws UnauthorizedEvent for an event that is not public */
export type PublicTrigger<D extends EventDetails = EventDetails, Output = unknown> = Trigger<D> & {
  onEmit(listener: (output: Output) => void): Disconnect
  /** Removes the handlers and calls what was registered for the end. */
  disconnect(): Promise<void>
}

export type ProgramOptions<D extends EventDetails, Context extends object, Output> = BehavioralOptions & {
  readonly publicEvents?: readonly (keyof D & string)[]
  bProgram(tools: Omit<ProgramTools<D, Output>, keyof Context> & Context): Handlers<D> | Promise<Handlers<D>>
}

export class UnauthorizedEvent extends Error {
  override readonly name = 'UnauthorizedEvent'
}

/** Describes a program. Each call of the returned function starts one of its own, and resolves when its handlers are in place. */
export function useBehavioral<D extends EventDetails, Context extends object = object, Output = unknown>(
  program: ProgramOptions<D, Context, Output>,
): (context: Context) => Promise<PublicTrigger<D, Output>> {
  const publicEvents: readonly string[] = program.publicEvents ?? []
  return async (context) => {
    const { useFeedback, ...engine } = behavioral<D>(program)
    const cleanups = new Set<Disconnect>()
    const outputs = new Set<(output: Output) => void>()
    const emit = (output: Output) => {
      for (const listener of outputs) listener(output)
    }
    const disconnect = async () => {
      const all = [...cleanups]
      cleanups.clear()
      await Promise.all(all.map(async (cleanup) => cleanup()))
    }
    const addDisconnectCallback = (callback: Disconnect) => void cleanups.add(callback)
    const trigger = Object.assign((event: BPEvent<D>) => engine.trigger(event), { addDisconnectCallback })
    cleanups.add(useFeedback(await program.bProgram({ ...engine, bSync, bThread, trigger, disconnect, emit, ...context })))
    const outer = (event: BPEvent<D>) => {
      const { id } = asEvent(event, 'trigger: the event')
      const allowed = `Only public event types can be triggered: [${publicEvents.join(', ')}]`
      if (!publicEvents.includes(id)) throw new UnauthorizedEvent(`Event type "${id}" is not allowed. ${allowed}${maybe(id, publicEvents)}`)
      engine.trigger(event)
    }
    return Object.assign(outer, { onEmit: (listener: (output: Output) => void) => joined(outputs, listener), disconnect })
  }
}
