class Leadferry < Formula
  desc "Carry leads from spreadsheets into a lead-management service, once each"
  homepage "{{.URL}}"
  version "{{.Version}}"

  on_macos do
{{- range .Downloads}}
    {{if eq .Arch "arm64"}}on_arm{{else}}on_intel{{end}} do
      url "{{.URL}}"
      sha256 "{{.SHA256}}"
    end
{{- end}}
  end

  def install
    bin.install "leadferry"
    bash_completion.install "completion/leadferry.bash" => "leadferry"
    fish_completion.install "completion/leadferry.fish"
    zsh_completion.install "completion/_leadferry"
    pkgshare.install "samples"
    doc.install "docs", "THIRD-PARTY-LICENCES.txt"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/leadferry --version")
  end
end
