/** Generates the text of docs/config.md from the table. */

import { defaultOf, forms, type Row } from '../../kit/settings.ts'
import { defaultConfigToml } from '../config-text.ts'
import { type ChannelRows, leafOf, type Setting, sectionOf, tableOf, variablesOfSetting } from '../table.ts'
import { tomlValue } from '../text/toml.ts'

export function configDocs(channels: readonly ChannelRows[]): string {
  const { settings } = tableOf(channels)
  const sections = [...new Set(settings.map(({ key }) => sectionOf(key)))]
  const tables = sections.map((section) =>
    table(
      section,
      settings.filter(({ key }) => sectionOf(key) === section),
    ),
  )
  return [head, ...tables, example(channels)].join('\n\n').concat('\n')
}

const head = `<!-- generated from the rows that src/config/table.ts gathers; a test fails when this page is stale -->

# Configuration

\`~/.braidclaw/config.toml\`, or \`$BRAIDCLAW_HOME/config.toml\`: BRAIDCLAW_HOME moves the whole tree, and then \`~/.braidclaw/…\` in a
path means that folder too. With neither HOME nor BRAIDCLAW_HOME set nothing runs but the help; with BRAIDCLAW_HOME alone, \`~\` in a path is the home of
the user database. \`braidclaw init\` writes an annotated file; run again, it adds the providers whose keys are set by then and leaves the
rest as it is. \`braidclaw config validate\` names every
error at once, with line and column, and warns of what may be a mistake (exit 0); \`braidclaw config show --origin\` prints what holds and which source won;
\`braidclaw config schema\` prints a JSON Schema. \`braidclaw config set KEY VALUE [KEY VALUE …]\` and \`config unset KEY\` change single
settings and leave comments and order as they are, \`config get KEY\` prints one, and \`config edit\` opens the file in VISUAL or EDITOR. All three check the whole file
first: a file that would be wrong is not written, and one that is wrong is only changed by \`config edit\`. No file is needed: without one the first provider whose
key is in the environment answers, or else the offline helper ([models.md](models.md)).

## The workspace

The tools work in the folder you are in (or in that of \`-C DIR\`), unless \`workspace_dir\` is set: then they work there, wherever you are. What stays in the
background (\`daemon\`, \`bridge\`) works in \`~/braidclaw-workspace\`, which is made when it is first needed. The terminal and the filter use that folder too when
you are in \`/\`, in your home folder itself (or above it), or in \`~/.braidclaw\`, and say so: such a folder also
holds your keys and mail. \`-C .\` uses it all the same.

The defaults are the same with and without a file. \`braidclaw init --seed-defaults\` writes a new file with the smaller limits of the first
specification: 5 rounds of tool calls a turn, 15 seconds a command. \`braidclaw doctor\` says which limits hold and where they come from.

## Which source wins

flags > agents.json > environment > env file > project > user > defaults.

- **Flags**: \`--workspace DIR\`, \`--model PROVIDER/MODEL\` or \`--model MODEL\`, and so on. The part before the first slash names the provider; when there
  is none of that name, nothing is asked. A model whose own name has a slash is written after its provider: \`openrouter/meta-llama/llama-3.3-70b\`.
- **Environment**: the variables below; an empty one counts as not set. Lists are written \`a,b\` or as JSON; \`[]\` is the empty list.
  \`BRAIDCLAW_MOCK_FIXTURE=FILE\` is the fixture of every mock provider.
- **agents.json** (\`~/.braidclaw/agents.json\`, or \`config/agents.json\` in the same folder): \`{"coder": {"soul": "souls/coder.md", "model": null}}\`. The model of the
  agent that is asked (\`--agent\`, \`default_agent\`, or else "default") counts above the environment. \`soul\` is relative to the home.
- **Env file**: \`config/braidclaw.env\` or \`config/shellclaw.env\` in the home, lines of \`NAME=value\` with the same variables. It is read, never run: \`$(…)\`
  is text, and a line that is not an assignment is reported. \`SHELLCLAW_MODEL\`, \`SHELLCLAW_DEFAULT_AGENT\` and \`SHELLCLAW_TOOL_BACKEND\` mean the same as with
  \`BRAIDCLAW_\` where that one is not set, here and in the environment; \`SHELLCLAW_HOME\` too, in the environment.
- **\`BRAIDCLAW_LLM_BACKEND=NAME\`** (or \`SHELLCLAW_LLM_BACKEND\`) lets that provider answer whatever anything else says, \`-m\` included. \`stub\` answers "stub response N",
  where N counts the calls of an agent.
- **Project**: \`.braidclaw/config.toml\` in the workspace given by \`-C\`, or else in the current folder, and only when you have trusted that folder or
  one above it; otherwise it is ignored, and a line on stderr says so. Even then it can only set keys marked *yes*, those marked *stricter* so that
  they permit less (a lower level, a smaller budget, fewer tools), and those marked *added*, whose list is added to yours. A \`braidclaw.config.ts\`
  beside it, or \`.plaited/config.ts\`, stands above it with the same limits ([library-data.md](library-data.md)).
- A model belongs to the provider it was chosen for: when a stronger source chooses another provider, \`default_model\` is left aside and
  the provider's own model is asked.

## Text

- Paths must be absolute, or start with \`~/\`. On the command line and in variables they may be relative to the current folder.
- \`$NAME\` and \`\${NAME}\` are replaced in paths, addresses, models and names of providers; a variable that is not set is an error.
  \`$$\` is a dollar sign.
- Secrets never stand in the file: \`api_key_env\` names the variable that holds the key. An unset one matters only when that provider is used.
  A key that \`login\` or \`onboard\` keeps stands in \`keys.env\` beside the file, lines of \`NAME='key'\`; a variable of the environment counts more. It is used only
  while nobody but you may read it (mode 0600), and sets nothing whose name does not end in \`_KEY\` or \`_TOKEN\`.
- An unknown key is an error.`

function table(section: string, rows: readonly Setting[]): string {
  const provider = section.includes('*')
  const title = section === '' ? '## Top of the file' : `## \`[${section.replace('*', 'NAME')}]\``
  const columns = provider
    ? ['key', 'type', 'default', 'kinds', 'meaning']
    : ['key', 'type', 'default', 'environment', 'project', 'meaning']
  const cells = rows.map((row) => [
    `\`${leafOf(row.key).replace('*', 'ID')}\``,
    typeOf(row),
    fallBack(row),
    ...(provider ? [kinds(row)] : [variables(row), projects[row.project ?? 'refused']]),
    row.about,
  ])
  return `${title}\n\n${[columns, columns.map(() => '---'), ...cells].map((row) => `| ${row.map(cell).join(' | ')} |`).join('\n')}`
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}

function typeOf(setting: Row): string {
  switch (setting.type) {
    case 'choice':
      return setting.values.map((value) => `\`${value}\``).join(', ')
    case 'whole':
    case 'number':
      return `${setting.type === 'whole' ? 'whole number' : 'number'} ${setting.min} to ${setting.max}, ${setting.unit}`
    case 'text':
      return setting.form === undefined ? 'text' : forms[setting.form].says
    case 'words':
      return `list; each ${forms[setting.form].says}`
    default:
      return {
        boolean: 'true or false',
        path: 'path',
        url: 'http(s) address',
        paths: 'list of paths',
        ports: 'list of ports',
        map: 'table',
        table: 'table',
      }[setting.type]
  }
}

/** For a provider's key, lists the default of each kind where they differ. */
function fallBack({ kinds, ...setting }: Setting): string {
  const byKind = Map.groupBy(kinds ?? [{ kind: '', row: setting }], ({ row }) => usual(row))
  const differs = byKind.size > 1
  return [...byKind].map(([words, group]) => (differs ? `${group.map(({ kind }) => kind).join(', ')}: ${words}` : words)).join('; ')
}

function usual(row: Row): string {
  const value = defaultOf(row)
  if (value !== undefined) return `\`${tomlValue(value)}\``
  const absent = row.absent ?? row.computed
  return row.required || absent === undefined ? 'required' : `not set: ${absent}`
}

function kinds({ kinds: own }: Setting): string {
  return own?.map(({ kind }) => kind).join(', ') ?? 'all'
}

function variables(setting: Setting): string {
  return variablesOfSetting(setting)
    .map((name) => `\`${name}\``)
    .join(', ')
}

const projects = { refused: 'user only', free: 'yes', stricter: 'stricter', union: 'added' } as const

function example(channels: readonly ChannelRows[]): string {
  return `## The file that \`braidclaw init\` writes\n\n\`\`\`toml\n${defaultConfigToml({ proposals: [], channels })}\`\`\``
}
