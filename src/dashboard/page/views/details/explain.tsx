/** Asks the gate what it would say of a command or a call, without running it. */

import { useState } from 'preact/hooks'
import { call } from '../../net/api.ts'
import { Field, submitBy } from '../../parts/fields.tsx'
import { Facts, Part, VerdictTag } from '../../parts/small.tsx'
import { type Explanation, levels, type ToolFacts } from '../../shapes.ts'

export function Explain({ tools }: { readonly tools: readonly ToolFacts[] }) {
  const [tool, setTool] = useState('')
  const [text, setText] = useState('')
  const [said, setSaid] = useState<Explanation | undefined>()
  const [problem, setProblem] = useState('')
  const [busy, setBusy] = useState(false)
  async function ask(): Promise<void> {
    setBusy(true)
    try {
      setSaid(await call<Explanation>('POST', '/policy/explain', questionOf(tool, text)))
      setProblem('')
    } catch (error) {
      setSaid(undefined)
      setProblem(error instanceof Error ? error.message : String(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <Part id="explain-title" title="Would it be allowed?">
      <form class="card" onSubmit={submitBy(ask)}>
        <div class="fields">
          <Field id="explain-tool" label="What">
            <select id="explain-tool" value={tool} onChange={(event) => setTool(event.currentTarget.value)}>
              <option value="">A command</option>
              {tools.map(({ name }) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </Field>
          <Field id="explain-text" label={tool === '' ? 'The command' : 'Its arguments, as JSON'}>
            <input
              id="explain-text"
              class="mono"
              required={tool === ''}
              placeholder={tool === '' ? 'git push --force' : '{"path":"notes.txt"}'}
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </Field>
          <button type="submit" class="main">
            Explain
          </button>
        </div>
        <p class={busy ? 'quiet small working' : 'quiet small'}>{busy ? 'Asking the gate' : 'Nothing runs: only the gate is asked.'}</p>
      </form>
      <div role="status">
        {problem !== '' && <p class="card bad breaks">{problem}</p>}
        {said && <Said of={said} />}
      </div>
    </Part>
  )
}

/** @throws Error that says what the arguments must look like */
function questionOf(tool: string, text: string): object {
  if (tool === '') return { command: text }
  try {
    return { tool, input: JSON.parse(text.trim() || '{}') as unknown }
  } catch {
    throw new Error('The arguments must be one JSON object, such as {"path":"notes.txt"}.')
  }
}

const frames = { allow: 'good', ask: 'ask', deny: 'bad' } as const
const sentences = { allow: 'It runs without a question.', ask: 'It needs your yes.', deny: 'It is refused.' } as const

function Said({ of }: { readonly of: Explanation }) {
  const { verdict, risk, rule, meaning, reason, summary, changes, network, rules, level } = of
  return (
    <div class={`card ${frames[verdict]}`}>
      <p>
        <strong>
          {changes !== null && verdict === 'allow' ? 'It runs without a question, and its changes are judged then.' : sentences[verdict]}
        </strong>
      </p>
      <Facts
        of={[
          ['Call', <code class="breaks">{summary}</code>],
          ['Why', reason],
          ['Rule', meaning === null ? <code>{rule}</code> : [<code>{rule}</code>, ` ${meaning}`]],
          ['Risk', risk],
          ...(changes === null ? [] : [['Changes', changes] as const]),
          ...(network.length === 0 ? [] : [['Network', network.join(', ')] as const]),
          ...rules.map((each) => ['Your rule', `${each.rule} in ${each.file}${each.denies ? ' denies it' : ' looks at it'}`] as const),
        ]}
      />
      <ul class="levels" aria-label="At each level">
        {levels.map((name) => (
          <li key={name}>
            <span class="quiet">
              {name}
              {name === level ? ' (in force)' : ''}
            </span>{' '}
            <VerdictTag of={of.levels[name].verdict} />
          </li>
        ))}
      </ul>
    </div>
  )
}
