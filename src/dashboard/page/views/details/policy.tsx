/** Shows the level and the lists that hold now. */

import { call } from '../../net/api.ts'
import { Words } from '../../parts/fields.tsx'
import { Loaded, useLoaded } from '../../parts/loaded.tsx'
import { Columns, Facts, Part, Scroll, VerdictTag } from '../../parts/small.tsx'
import { levels, type PolicyShown } from '../../shapes.ts'

export function Policy() {
  const policy = useLoaded(() => call<PolicyShown>('GET', '/policy'), 'policy')
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
    <Scroll label="What happens at each level">
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
          <ul class="chips">
            {names.map((each) => (
              <li key={each}>
                <code>{each}</code>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </details>
  )
}
