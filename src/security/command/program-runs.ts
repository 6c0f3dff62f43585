/** Lists the programs that a shell line runs: which checks they are, and for which of them the exit code of the line speaks. */

import { type AndOr, type CommandNode, type PipelineNode, parse, type Statement } from 'unbash'

export type CheckKind = 'tests' | 'build' | 'types' | 'lint'
export type GitOp = 'commit' | 'push' | 'pull request' | 'merge' | 'tag'

/** Describes what one program of a shell line does. The exit code of the line is that of the program only where `decides` is true. */
export type ProgramRun = {
  readonly text: string
  readonly checks: readonly CheckKind[]
  readonly git?: GitOp | undefined
  readonly installs?: readonly string[] | undefined
  /** The program may also change files that are not its output: a formatter that writes. */
  readonly edits: boolean
  readonly decides: boolean
}

/** Pure; never throws. Returns nothing for a line that cannot be read. */
export function programRuns(line: string, level = 0): ProgramRun[] {
  try {
    const runs: ProgramRun[] = []
    // A trap, an alias or a function can make any exit code of it.
    const isPlain = !/(^|[;&|(\n{]\s*|\bthen |\bdo )(trap|alias|function|eval|exec)\s|\w\s*\(\)\s*\{/.test(line)
    visitList(parse(line).commands, { runs, level, decides: isPlain, always: false, pipefail: false })
    return runs
  } catch {
    return []
  }
}

/** `decides`: the exit code of the line is that of the node. `always`: after `set -e` each statement ends the line when it fails. */
type Walk = { readonly runs: ProgramRun[]; readonly level: number; readonly decides: boolean; always: boolean; pipefail: boolean }

function visitList(statements: readonly Statement[], walk: Walk): void {
  for (const [index, { command, background }] of statements.entries())
    visit(command, { ...walk, decides: walk.decides && !background && (walk.always || index === statements.length - 1) }, walk)
}

/** `outer` learns of `set -e`. */
function visit(node: PipelineNode | AndOr | CommandNode, walk: Walk, outer: Walk): void {
  if (node.type === 'AndOr') {
    const { commands, operators } = node
    const saysNo = (at: number) => operators[at] === '||' && /^(?:exit|return) *[1-9$]|^false$/.test(textOf(commands[at + 1]))
    const isAnd = operators.every((operator, at) => operator === '&&' || (saysNo(at) && at === operators.length - 1))
    for (const each of commands) visit(each, { ...walk, decides: walk.decides && isAnd }, outer)
  } else if (node.type === 'Pipeline') {
    const decides = walk.decides && !node.prefixes.some(({ type }) => type === 'Negation')
    for (const [index, each] of node.commands.entries())
      visit(each, { ...walk, decides: decides && (walk.pipefail || index === node.commands.length - 1) }, outer)
  } else if (node.type === 'Redirected') visit(node.command, walk, outer)
  else if (node.type === 'Subshell' || node.type === 'BraceGroup') visitList(node.body.commands, walk)
  else if (node.type === 'If') visitList([...node.clause.commands, ...node.then.commands], { ...walk, decides: false })
  else if (node.type === 'Command') {
    const words = textsOf(node)
    const options = words.slice(1).join(' ')
    if (words[0] === 'set') {
      outer.always ||= /(^|\s)-\w*e|errexit/.test(options)
      outer.pipefail ||= /pipefail/.test(options)
    } else note(words, walk)
  }
}

function textOf(node: PipelineNode | AndOr | CommandNode | undefined): string {
  return node?.type === 'Command' ? textsOf(node).join(' ') : ''
}

function textsOf({ name, args }: Extract<CommandNode, { type: 'Command' }>): string[] {
  return [...(name ? [name] : []), ...args].map((word) => ('value' in word && typeof word.value === 'string' ? word.value : word.text))
}

/** These run the program in their arguments; the pattern has their own words. */
const wrappers =
  /^(?:(?:\S+\/)?(?:sudo|doas|time|nice|nohup|command|env|exec|stdbuf|xvfb-run|npx|bunx|pnpx|uvx|watchexec)(?: -[^\s]+)*|timeout(?: -\S+)* \S+|(?:npm|pnpm|yarn|bun)(?: exec| x| dlx)|(?:yarn|pnpm)(?= (?:jest|vitest|mocha|tsc|vue-tsc|eslint|prettier|biome|webpack|vite|next|playwright|cypress)\b)|coverage run(?: -m)?|(?:uv|poetry|pipenv|hatch|rye|pdm) run|bundle exec|mise exec|dotenv|cross-env|docker(?: compose|-compose)? (?:run|exec)(?: -\S+)* \S+|python[\d.]* -m|[A-Z_]+=\S*)(?: --)? /

function note(words: readonly string[], { runs, level, decides }: Walk): void {
  let text = words.join(' ')
  for (let next = text.replace(wrappers, ''); next !== text; next = text.replace(wrappers, '')) text = next
  const script = /^(?:\S*\/)?(?:bash|sh|zsh|dash)$/.test(words[0] ?? '') ? words.findIndex((word) => /^-\w*c$/.test(word)) : -1
  if (script > 0 && level < 4) {
    for (const run of programRuns(words[script + 1] ?? '', level + 1)) runs.push({ ...run, decides: run.decides && decides })
    return
  }
  text = text
    .replace(/^(?:\.{0,2}\/)?(?:node_modules\/\.bin\/|\S*\/bin\/)|^(?:php )?vendor\/bin\/|^@biomejs\/(?=biome\b)/, '')
    .replace(
      /^((?:npm|pnpm|yarn|bun|go|cargo|git|make|deno)) (?:(?:-s|--silent|-C \S+|--prefix[= ]\S+|--cwd[= ]\S+|-q|-c \S+|--no-env-file|--config=\S+|-r|-w \S+|--recursive|-F \S+|--filter \S+|workspace \S+|--workspace[= ]\S+|--filter[= ]\S+|-j ?\d*|--color\S*) )+/,
      '$1 ',
    )
  if (text === '') return
  // These only ask about the program.
  if (/\s(?:--help|--version|-h|-V|--list(?:Tests)?|--dry-run|--collect-only)(?:\s|$)/.test(` ${text} `)) text = ''
  const kinds = checks.filter(({ pattern }) => pattern.test(text)).map(({ name }) => name)
  const git = gitOps.find(({ pattern }) => pattern.test(text))?.name
  runs.push({ text: words.join(' '), checks: kinds, git, installs: installedBy(text), edits: editors.test(text), decides })
}

const editors =
  /\s(?:--fix|--write|-w|--update|-u|--apply|--updateSnapshot|--unsafe)(?:\s|=|$)|^(?:cargo fmt|gofmt -w|ruff format|black|isort|sed -i)\b/

const scriptOf = '^(?:npm|pnpm|yarn|bun|deno task|make|just|task|rake|composer)(?: run(?:-script)?)?'

function table<Name extends string>(text: string): readonly { readonly name: Name; readonly pattern: RegExp }[] {
  const rows = text
    .trim()
    .split('\n')
    .map((line) => line.split(/: (.*)/))
  return rows.map(([name, pattern = '']) => ({ name: name as Name, pattern: new RegExp(pattern.replaceAll('{script}', scriptOf)) }))
}

/** Each line: a kind of check, and the programs that are one. */
const checks = table<CheckKind>(String.raw`
tests: {script} (?:\S*:)?(?:t|tst|tests?|spec|check|ci|verify|e2e|unit|coverage|validate)(?:[:_-]\S+)?(?: |$)|^(?:pytest|py\.test|unittest|tox|nox|jest|vitest|mocha|ava|tap|rspec|phpunit|ctest|bats|karma|minitest|busted|pester|behat|cucumber)\b|^(?:cargo|go|deno|dotnet|swift|mix|zig build|playwright|cypress|flutter|dart|sbt|lein|stack|cabal|bazel|ng|react-scripts|node --experimental-\S+) (?:test|run|nextest)\b|^cargo nextest|^prove\b|^R CMD check\b|^(?:python[\d.]* )(?:setup\.py test|\S*tests?\/\S+\.py)\b|^xcodebuild (?:\S+ )*test\b|^turbo run test\b|^node .*--test\b|^(?:python[\d.]* )?(?:\S*\/)?manage\.py test\b|^(?:\S*\/)?(?:rails|hatch|php artisan|turbo|nx|lerna run|nix flake) (?:test|check)\b|^(?:\S*\/)?(?:mvn|mvnw|gradle|gradlew)\b.* ?(?:test\w*|check|verify|build)\b|^(?:\S*\/)?gradlew? \S*:test\w*|^(?!\[|test )(?:(?:ba|z)?sh |bun |node |python[\d.]* |ruby |tsx |deno run )?(?:-\S+ )*(?:\.{0,2}\/)?(?:\S*[-_./])?(?:tests?|specs?)(?:[-_.]\S*)?(?: |$)
build: {script} (?:\S*:)?(?:build|compile|bundle|dist|all|check|ci|package|prepare|typecheck|tsc)(?:[:_-]\S+)?(?: |$)|^make(?: -\S+)*$|^(?:docker|podman)(?: compose| buildx)? build\b|^docker-compose build\b|^(?:sbt|lein) compile\b|^(?:mkdocs|poetry|hatch|uv|build|elm make|expo export)(?: build\b|$)|^(?:elm make|expo export|rustc)\b|^(?:tsc|vue-tsc|javac|gcc|g\+\+|clang(?:\+\+)?|cc|webpack|rollup|esbuild|ninja|meson compile|cmake --build|hugo|jekyll|eleventy|parcel|tsup|swc|ncc|msbuild|xcodebuild|latexmk|pdflatex)\b|^(?:cargo|go|dotnet|swift|zig|bun|next|vite|nuxt|astro|ng|mix|flutter|stack|cabal|bazel|react-scripts|turbo run|nx) (?:build|check|compile|vet|run|install)\b|^(?:\S*\/)?(?:mvn|mvnw|gradle|gradlew)\b.* (?:compile|package|install|verify|build|assemble)\b
types: {script} (?:\S*:)?(?:type-?checks?|types?|check-types|tsc|check|build|compile|ci)(?:[:_-]\S+)?(?: |$)|^(?:tsc|vue-tsc|tsgo|mypy|pyright|basedpyright|pyre|flow|pytype|ty|sorbet|srb|phpstan|psalm|svelte-check|javac)\b|^(?:cargo (?:check|build|clippy)|go (?:vet|build)|deno check|dotnet build|swift build)\b
lint: {script} (?:\S*:)?(?:lint\w*|format|fmt|eslint|biome|check|ci|style|prettier)(?:[:_-]\S+)?(?: |$)|^(?:eslint|biome|oxlint|ruff|flake8|pylint|golangci-lint|shellcheck|stylelint|rubocop|ktlint|markdownlint\S*|prettier|standard|xo|dprint|black|hadolint|yamllint|tslint|swiftlint|checkstyle|clippy|phpcs|credo|gofmt)\b|^(?!touch|echo|cat|ls|cd|mkdir|rm|vim?|grep)[\w-]+ lint(?: |$)|^(?:\S*\/)?gradlew?\b.* ?lint\w*|^pre-commit run\b|^terraform (?:fmt|validate)\b|^(?:isort|ansible-lint|tflint|clang-format|clang-tidy)\b|^(?:cargo (?:clippy|fmt)|go vet|deno lint|next lint|mix credo|ng lint|dart analyze|flutter analyze)\b
`)

const gitOps = table<GitOp>(String.raw`
push: ^git push\b
commit: ^git (?:commit|cherry-pick|revert)\b
merge: ^(?:git merge|git pull|gh pr merge|glab mr merge)\b
tag: ^git tag \S|^npm version\b|^gh release create\b
pull request: ^(?:gh pr create|gh api \S+\/pulls|glab mr create|hub pull-request|az repos pr create)\b
`)

const installers =
  /^(?:(?:npm|pnpm|yarn|bun) (?:i|install|add|ci)|yarn$|pipx?[\d.]* install|uv (?:pip install|add|sync)|(?:poetry|pdm|rye) (?:add|install|sync)|pipenv install|cargo (?:add|install)|go (?:get|install|mod (?:tidy|download))|deno add|nuget install|playwright install|rustup component add|(?:apt|apt-get|apk|brew|gem|dnf|yum|pacman|conda|mamba|choco|winget|composer|bundle|dotnet|pod|mix|flutter pub|snap) (?:-\S+ )*(?:install|add|require|-S|get|deps\.get|update))(?=\s|$)/

function installedBy(text: string): readonly string[] | undefined {
  const own = installers.exec(text)?.[0]
  return own === undefined
    ? undefined
    : text
        .slice(own.length)
        .split(/\s+/)
        .filter((word) => word !== '' && !word.startsWith('-'))
}
