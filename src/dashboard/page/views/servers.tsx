/** Answers "whose tools are these": each MCP server with what it may do, its tools, and how it differs from what was approved. */

import { useState } from 'preact/hooks'
import type { McpServerShown } from '../../../channels/http/answer-shapes.ts'
import { call } from '../net/api.ts'
import { About, counted } from '../parts/fields.tsx'
import { Loaded, useAnswer } from '../parts/loaded.tsx'
import { Button, Diff, Empty, Facts, Tag } from '../parts/small.tsx'
import { doing, may } from '../state.ts'

type ServerFacts = Omit<McpServerShown, 'seal' | 'patch'>

const stateKinds = { approved: 'good', changed: 'warn', 'not approved': 'warn', disabled: '', gone: 'bad' } as const

export function Servers(_: { readonly rest: string }) {
  const list = useAnswer<{ servers: readonly ServerFacts[]; problems: readonly string[] }>('/mcp/servers')
  return (
    <>
      <h1>MCP servers</h1>
      <About>See which servers of others are configured, what they may do, and which of their tools the agent is offered.</About>
      <Loaded from={list}>
        {({ servers, problems }) => (
          <>
            {problems.map((problem) => (
              <p key={problem} class="card warn breaks">
                {problem}
              </p>
            ))}
            {servers.length === 0 && (
              <Empty>
                No MCP server is configured. Add one in a terminal: <code>braidclaw mcp add --help</code>
              </Empty>
            )}
            {servers.map((server) => (
              <ServerCard key={`${server.origin} ${server.id}`} server={server} changed={list.again} />
            ))}
          </>
        )}
      </Loaded>
    </>
  )
}

type ServerProps = { readonly server: ServerFacts; readonly changed: () => void }

function ServerCard({ server, changed }: ServerProps) {
  const { id, state, origin, project, transport, reached, permissions, says, tools, refused } = server
  const offered = tools.filter((tool) => tool.state === 'approved').length
  return (
    <article class="card" aria-label={`MCP server ${id}`}>
      <div class="row">
        <h2 class="name">{id}</h2>
        <Tag kind={stateKinds[state]}>{state}</Tag>
      </div>
      <Facts
        of={[
          [transport === 'stdio' ? 'Runs' : 'Address', <code class="breaks">{reached}</code>],
          ['From', `${origin}${project === null ? '' : ` (the project ${project})`}`],
          transport === 'stdio' && ['May use', accessOf(permissions)],
          ['Says it is', says ?? 'never asked'],
          ['Tools', `${offered} of ${counted(tools.length, 'tool')} offered`],
        ]}
      />
      {may('admin') && <Actions server={server} changed={changed} />}
      <ToolList server={server} changed={changed} />
      {refused.map(({ name, why }) => (
        <p key={name} class="small breaks">
          Refused: <code>{name}</code>: {why}
        </p>
      ))}
      <Difference server={server} changed={changed} />
    </article>
  )
}

function accessOf({ files, folders, hosts, variables }: ServerFacts['permissions']): string {
  const lists = [
    ['folders', folders],
    ['hosts', hosts],
    ['variables', variables],
  ] as const
  const named = lists.flatMap(([name, list]) => (list.length === 0 ? [] : [`${name}: ${list.join(', ')}`]))
  return [`files of the workspace: ${files}`, ...named].join('; ')
}

function Actions({ server: { id, state }, changed }: ServerProps) {
  const on = state === 'approved'
  return (
    <div class="row actions">
      {(on || state === 'disabled') && (
        <Button
          word={on ? 'Disable' : 'Enable'}
          on={() => change('PATCH', id, '', on ? `Disabled: ${id}` : `Enabled: ${id}`, { enabled: !on }, changed)}
          more={` ${id}`}
        />
      )}
      <Button word="Ask what it offers" on={() => change('POST', id, '/test', `${id} was asked`, {}, changed)} more={`: ${id}`} />
    </div>
  )
}

async function change(
  ...[method, id, path, done, body, changed]: ['PATCH' | 'POST', string, string, string, object, () => void]
): Promise<void> {
  await doing(done, () => call(method, `/mcp/servers/${encodeURIComponent(id)}${path}`, body))
  changed()
}

function ToolList({ server: { id, tools }, changed }: ServerProps) {
  return (
    <details>
      <summary>
        Tools<span class="hidden"> of {id}</span>
      </summary>
      <ul class="list">
        {tools.map(({ name, state, description }) => (
          <li key={name} class="line">
            <div class="grow">
              <div class="row">
                <code class="name">{name}</code>
                <Tag kind={stateKinds[state]}>{state}</Tag>
              </div>
              <p class="breaks">{description}</p>
            </div>
            {may('admin') && (state === 'approved' || state === 'disabled') && (
              <Button
                word={state === 'disabled' ? 'Offer' : 'Do not offer'}
                on={() => change('PATCH', id, '', `Changed: ${name}`, { enabled: state === 'disabled', tool: name }, changed)}
                more={` ${name}`}
              />
            )}
          </li>
        ))}
      </ul>
    </details>
  )
}

/** Shows what an approval would approve, and approves exactly that. */
function Difference({ server: { id, state, tools, says }, changed }: ServerProps) {
  const [open, setOpen] = useState(false)
  const isNew = ['changed', 'not approved'].includes(state) || tools.some((tool) => ['changed', 'not approved'].includes(tool.state))
  if (!isNew) return null
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        What is not approved<span class="hidden"> of {id}</span>
      </summary>
      {says === null && <p>Nothing can be approved before the server was asked what it offers.</p>}
      {open && <Shown key={JSON.stringify([state, tools])} id={id} changed={changed} />}
    </details>
  )
}

function Shown({ id, changed }: { readonly id: string; readonly changed: () => void }) {
  const shown = useAnswer<McpServerShown>(`/mcp/servers/${encodeURIComponent(id)}`)
  const again = () => {
    shown.again()
    changed()
  }
  return (
    <Loaded from={shown}>
      {({ patch, seal, says }) => (
        <>
          <Diff text={patch} />
          {may('admin') && says !== null && (
            <Button
              word="Approve exactly this"
              on={() => change('POST', id, '/approve', `Approved: ${id}`, { seal }, again)}
              more={` of ${id}`}
            />
          )}
        </>
      )}
    </Loaded>
  )
}
