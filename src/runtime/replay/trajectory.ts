/** Defines a run as an example for training, and makes its steps. It imports nothing of Bun. */

import type { Call } from '../event.ts'

/** Each step is one call, or one reply without calls. */
export type Trajectory = {
  task_id: string
  prompt: string
  steps: Array<{
    /** All that the model read since its previous step: the task, results, the evidence of a failed check. */
    state: string
    /** The command; the name and the arguments of any other tool; the text of a reply without calls. */
    action: string
    /** The result. For a reply without calls: the evidence of the check that failed, if one did. */
    observation: string
    thinking?: string
  }>
  outcome: 'success' | 'failure'
  iterations: number
  /** 1 when all checks passed, else 0. */
  reward: number
}

/** Collects the steps of a run from what happens in it, in order. */
export function createSteps() {
  const steps: Trajectory['steps'] = []
  const calls = new Map<string, Trajectory['steps'][number]>()
  const now: { read: string[]; thinking: string; text: string; answer?: Trajectory['steps'][number] | undefined } = {
    read: [],
    thinking: '',
    text: '',
  }

  function add(action: string, ...thoughts: readonly string[]): Trajectory['steps'][number] {
    const thinking = thoughts.filter(Boolean).join('\n\n')
    const step = { state: now.read.join('\n\n'), action, observation: '', ...(thinking && { thinking }) }
    Object.assign(now, { read: [], thinking: '', text: '', answer: undefined })
    steps.push(step)
    return step
  }

  return {
    steps,
    /** Adds to the reply that is under way. */
    say(kind: 'text' | 'thinking', more: string): void {
      now[kind] += more
    },
    act: (call: Call) => void calls.set(call.id, add(actionOf(call), now.thinking, now.text)),
    got(id: string, result: string): void {
      const step = calls.get(id)
      if (step) step.observation = result
      now.read.push(result)
    },
    /** Ends a reply; without calls its text is the action. */
    end(): void {
      if (now.text + now.thinking !== '') now.answer = add(now.text, now.thinking)
    },
    read(text: string): void {
      if (now.answer) now.answer.observation = text
      now.read.push(text)
    },
  }
}

function actionOf({ name, input, malformed }: Call): string {
  if (malformed !== undefined) return `${name} ${malformed}`
  return typeof input.command === 'string' && Object.keys(input).length === 1 ? input.command : `${name} ${JSON.stringify(input)}`
}
