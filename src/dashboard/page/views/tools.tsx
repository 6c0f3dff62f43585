/** Answers "what may it do, and why": the tools, what the gate says of a call, the lists in force, and what is always allowed. */

import { useState } from 'preact/hooks'
import type { AlwaysRule, Explanation, PolicyShown } from '../../../channels/http/answer-shapes.ts'
import { call } from '../net/api.ts'
import { About, Chips, InputField, SelectField, submitBy, Words } from '../parts/fields.tsx'
import { Loaded, LoadedList, useAnswer } from '../parts/loaded.tsx'
import { Button, Columns, Facts, Part, riskKind, Scroll, Submit, Tag, Time, VerdictTag } from '../parts/small.tsx'
import { levels, type ToolFacts } from '../shapes.ts'
import { attempt, may } from '../state.ts'

export function Tools(_: { readonly rest: string }) {
  const tools = useAnswer<readonly ToolFacts[]>('/tools', ({ event }) => event.type === 'estop')
  return (
    <>
      <h1>Tools and rules</h1>
      <About>See what the agent can use, what it may do without asking, what needs your approval, and what it never does.</About>
      <Explain tools={tools.value ?? []} />
      <Part id="tools-title" title="Tools">
        <Loaded from={tools}>{(all) => <ToolList of={all} />}</Loaded>
      </Part>
      <Always />
      <Policy />
    </>
  )
}

function ToolList({ of }: { readonly of: readonly ToolFacts[] }) {
  const [offered, others] = [of.filter(({ active }) => active), of.filter(({ active }) => !active)]
  return (
    <ul class="list">
      {[...offered, ...others].map(({ name, description, risk, active, why, source }) => (
        <li key={`${source} ${name}`} class="line">
          <div class="grow">
            <div class="row">
              <code class="name">{name}</code>
              <Tag kind={riskKind(risk)}>{risk} risk</Tag>
              {active ? <Tag>offered</Tag> : <Tag kind="warn">not offered</Tag>}
              {source !== 'built in' && <span class="quiet small breaks">{source}</span>}
            </div>
            <p class="breaks">{firstSentence(description)}</p>
            {why !== undefined && <p class="small breaks">Not offered: {why}.</p>}
          </div>
        </li>
      ))}
    </ul>
  )
}

function firstSentence(text: string): string {
  return /^.*?[.!?](?=\s|$)/s.exec(text)?.[0] ?? text
}

function Always() {
  const rules = useAnswer<{ rules: readonly AlwaysRule[] }>('/approvals/rules', ({ event }) => event.type === 'approval_closed')
  async function revoke(id: number): Promise<void> {
    await attempt(() => call('DELETE', `/approvals/rules/${id}`))
    rules.again()
  }
  return (
    <Part id="always-title" title="Always allowed">
      <LoadedList from={rules} of={({ rules: all }) => all} empty="No call is always allowed: each question is answered once." list="ul">
        {({ id, tool, allows, added_by, added_at, altered }) => (
          <li key={id} class="line">
            <div class="grow">
              <p>
                <code class="breaks">{allows}</code> <span class="quiet">with the tool {tool}</span>
              </p>
              <span class="quiet small">
                {altered ? 'altered by somebody, so it allows nothing' : `allowed by ${added_by}`}, <Time at={added_at} />
              </span>
            </div>
            {may('admin') && <Button word="Revoke" on={() => revoke(id)} more={` ${allows}`} />}
          </li>
        )}
      </LoadedList>
    </Part>
  )
}

export function Policy() {
  const policy = useAnswer<PolicyShown>('/policy')
  return (
    <Part id="policy-title" title="In force">
      <Loaded from={policy}>{(shown) => <Shown of={shown} />}</Loaded>
    </Part>
  )
}

function Shown({ of }: { readonly of: PolicyShown }) {
  const { network, settings } = of
  return (
    <>
      <Facts
        of={[
          ['Level', of.level === 'auto' ? 'supervised, with --auto' : of.level],
          ['Workspace', `${of.workspace}${of.workspace_only ? ', and nothing outside it' : '; paths outside it are allowed too'}`],
          ['Commands', modeOf(of.commands)],
          [
            'Settings',
            Object.entries(settings)
              .map(([name, value]) => `${name} = ${value}`)
              .join(', '),
          ],
        ]}
      />
      <Levels of={of} />
      <div class="stack">
        <Words name="Commands of the allow list" of={of.allow_commands} />
        <Words name="Commands that never run" of={of.forbidden_commands} open />
        <Words name="Hosts that are allowed" of={network.allowed_domains} />
        <Words name="Ports that are allowed" of={network.ports.map(String)} />
        <Words name="Paths that are never touched" of={[...of.forbidden_paths, ...of.protected_paths]} />
        <Words name="Files that are never read" of={of.forbidden_reads} />
        <Named name="Names that are never written" of={of.protected_names} />
        <Named name="Names that always ask, because tools run or obey them" of={of.asks_always} />
      </div>
    </>
  )
}

function modeOf({ confined, transaction, network, why }: PolicyShown['commands']): string {
  const because = why === undefined ? '' : ` (${why})`
  if (!confined) return `nothing confines them${because}`
  const views = transaction ? 'each on a private view of the workspace' : `directly on the workspace${because}`
  return `in the sandbox, ${views}; network ${network === false ? 'never' : 'only to hosts that the command names'}`
}

function Levels({ of }: { readonly of: PolicyShown }) {
  return (
    <Scroll label="Decisions at each level">
      <table>
        <caption class="hidden">What happens to each kind of call at each level</caption>
        <Columns of={['Kind of call', ...levels.map((level) => `${level}${level === of.level ? ' (now)' : ''}`)]} />
        <tbody>
          {of.levels.map((row) => (
            <tr key={row.kind}>
              <th scope="row">{row.kind}</th>
              {levels.map((level) => (
                <td key={level}>
                  <VerdictTag of={row[level]} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}

function Named({ name, of }: { readonly name: string; readonly of: PolicyShown['protected_names'] }) {
  return (
    <details class="words">
      <summary>
        {name} <span class="quiet">({of.reduce((sum, { names }) => sum + names.length, 0)})</span>
      </summary>
      {of.map(({ reason, names }) => (
        <div key={reason}>
          <p class="small quiet">{reason}</p>
          <Chips of={names} />
        </div>
      ))}
    </details>
  )
}

/** Asks the gate what it would say of a command or a call, without running it. */
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
          <SelectField
            id="explain-tool"
            label="What"
            value={tool}
            of={[['', 'A command'], ...tools.map(({ name }) => name)]}
            set={setTool}
          />
          <InputField
            id="explain-text"
            label={tool === '' ? 'The command' : 'Its arguments, as JSON'}
            class="mono"
            required={tool === ''}
            placeholder={tool === '' ? 'git push --force' : '{"path":"notes.txt"}'}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <Submit>Explain</Submit>
        </div>
        <p class={busy ? 'quiet small working' : 'quiet small'}>
          {busy ? 'Asking the gate' : 'Nothing runs: the gate only says what it would decide.'}
        </p>
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
const sentences = { allow: 'It runs without a question.', ask: 'It needs your approval.', deny: 'It is refused.' } as const

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
          changes !== null && ['Changes', changes],
          network.length !== 0 && ['Network', network.join(', ')],
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
